#pragma once
#include <string>

namespace sfumato {

struct FarmOptions {
  int servers = 2;
  std::string host = "127.0.0.1";  ///< where the balancer listens, and the servers behind it
  /// The balancer's. Server i has port + i, and port + 100 + i for its agent check; port + 100 tells statistics.
  int port = 7860;
  std::string balance = "leastconn";  ///< or "random", as the published farm has it
};

/// A configuration for HAProxy 2.6 or later in front of `servers` processes, each
///     sfumato serve --port PORT+i --agent-port PORT+100+i --id-prefix s<i>-
/// (docs/farm.md says why each line is there).
std::string haproxy_config(const FarmOptions& farm);

}  // namespace sfumato
