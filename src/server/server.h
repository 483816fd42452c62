#pragma once
// `sfumato serve`, whole: connections, jobs and workers on one event loop.
#include <functional>
#include <string>
#include <vector>

#include "server/gate.h"
#include "server/http.h"
#include "server/jobs.h"
#include "server/service.h"
#include "server/workers.h"

namespace sfumato::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 7860;     ///< 0: any
  int agent_port = 0;  ///< HAProxy's agent check; 0: none
  /// From SIGTERM on, how long new work is still taken while health and agent say that the server ends: a balancer
  /// needs that time to hear it, and what it sends meanwhile would fail.
  std::chrono::seconds drain_delay{0};
  HttpLimits http;
  QueueLimits queue;
  RequestLimits requests;
  GateOptions gate;
  WorkerOptions workers;
  std::vector<ServedModel> models;
  std::function<void(const std::string&)> log;  ///< takes one line, a JSON object
};

/// Runs until SIGTERM or SIGINT: then no new work is taken, what was taken is finished, and all is over. A second
/// signal ends it at once. Errors: the address, or a model that no worker can load.
Result<void> run_server(ServerOptions options);

}  // namespace sfumato::server
