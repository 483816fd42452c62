#pragma once
// Who may ask what: API keys, the Host and Origin headers.
#include <optional>
#include <string>
#include <vector>

#include "server/http.h"

namespace sfumato::server {

struct GateOptions {
  std::vector<std::string> keys;  ///< empty: everybody may
  /// Host names that requests may be for; empty: any. On loopback the server takes only its own names, so that no web
  /// page that gets a name pointed at 127.0.0.1 can read what it answers (DNS rebinding).
  std::vector<std::string> hosts;
};

/// The keys of a file, a line each; at least one, of 16 characters or more.
Result<std::vector<std::string>> read_keys(const std::string& path);

/// Why the request is refused; nothing: it is not. `is_open`: needs no key.
std::optional<HttpResponse> refuse(const GateOptions& gate, const HttpRequest& request, bool is_open);

}  // namespace sfumato::server
