#include "server/gate.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "server/base64.h"

namespace sfumato::server {
namespace {

constexpr size_t kShortestKey = 16;

/// Compares digests, so that the time tells neither the length nor the first difference.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char x[SHA256_DIGEST_LENGTH], y[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(a.data()), a.size(), x);
  SHA256(reinterpret_cast<const unsigned char*>(b.data()), b.size(), y);
  return CRYPTO_memcmp(x, y, sizeof x) == 0;
}

/// "Bearer KEY", or as A1111's clients have it "Basic base64(user:KEY)".
std::string key_of(std::string_view authorization) {
  const size_t space = authorization.find(' ');
  if (space == std::string_view::npos) return "";
  const std::string scheme = lowercase_ascii(authorization.substr(0, space));
  const std::string_view value = trim(authorization.substr(space + 1));
  if (scheme == "bearer") return std::string(value);
  if (scheme != "basic") return "";
  const Result<std::string> pair = from_base64("Authorization", value);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  return colon == std::string::npos ? "" : pair->substr(colon + 1);
}

bool has_key(const GateOptions& gate, const HttpRequest& request) {
  if (gate.keys.empty()) return true;
  const std::string given = key_of(request.header("authorization"));
  bool found = false;
  for (const std::string& key : gate.keys) found |= same_secret(key, given);
  return found;
}

/// "name" of "name:7860" and "[::1]:7860".
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return std::string(host.substr(0, host.find(']') + 1));
  return lowercase_ascii(host.substr(0, host.find(':')));
}

}  // namespace

Result<std::vector<std::string>> read_keys(const std::string& path) {
  const auto file = TRY(MappedFile::open(path));
  std::vector<std::string> keys;
  for (const std::string& line : split(file->text(), '\n')) {
    const std::string_view key = trim(line);
    if (key.empty()) continue;
    if (key.size() < kShortestKey)
      return input_error(str("[server.keys] \"", path, "\": expected keys of at least ", kShortestKey, " characters"));
    keys.emplace_back(key);
  }
  if (keys.empty()) return input_error(str("[server.keys] \"", path, "\" holds no key"));
  return keys;
}

std::optional<HttpResponse> refuse(const GateOptions& gate, const HttpRequest& request, bool is_open) {
  const std::string_view host = request.header("host"), origin = request.header("origin");
  if (!gate.hosts.empty() && std::find(gate.hosts.begin(), gate.hosts.end(), host_name(host)) == gate.hosts.end())
    return error_response(
        403, str("[server.gate] this server does not go by the name \"", printable(host), "\"; --allow-host adds one"));
  if (!origin.empty()) {
    const size_t slashes = origin.find("://");
    if (slashes == std::string_view::npos || origin.substr(slashes + 3) != host)
      return error_response(403, str("[server.gate] pages of \"", printable(origin), "\" may not use this server"));
  }
  if (is_open || has_key(gate, request)) return std::nullopt;
  HttpResponse response =
      error_response(401, "[server.gate] expected an API key: Authorization: Bearer KEY", "", "invalid_api_key");
  response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

}  // namespace sfumato::server
