#include "apps/serve/haproxy.h"

#include "base/strings.h"

namespace sfumato {
namespace {

constexpr int kWaiting = 16;  // for each server, in the balancer; whoever comes then is told to come again

constexpr const char* kHead =
    R"(# HAProxy 2.6 or later, made by `sfumato serve --print-haproxy`; docs/farm.md explains it.
global
  log stderr format raw local0
  maxconn 2000
  # A request is kept whole to be sent again, and one with a picture has to fit; at most 2 GB for 2000 of them.
  tune.bufsize 1048576

defaults
  mode http
  option http-keep-alive
  # A picture may take many minutes: only a client or server that is gone ends the wait. Whether one is gone, TCP asks.
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout queue 1h
  timeout http-request 30s
  timeout http-keep-alive 60s
  timeout tunnel 1h
  # Busy is not dead: a check may take its time. A server that is dead refuses it at once.
  timeout check 5s
  option clitcpka
  clitcpka-idle 30s
  clitcpka-intvl 10s
  clitcpka-cnt 6
  option srvtcpka
  srvtcpka-idle 30s
  srvtcpka-intvl 10s
  srvtcpka-cnt 6
  # Nobody waits for it any more: out of the queue, or off the server, which stops within a step.
  option abortonclose
  # Sent again only where no picture was begun, or the server died with it: refused, closed without a byte, or
  # turned away by a server that drains. Never after a timeout: it might be drawn twice.
  retries 3
  retry-on conn-failure empty-response 503
  option redispatch 1
  option http-buffer-request

)";

constexpr const char* kFull = R"("{\"error\":{\"message\":\"[farm.queue] the queue is full; try again later\",)"
                              R"(\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"queue_full\"}}")";

constexpr const char* kCheck =
    "  option httpchk GET /health/ready\n"
    "  http-check send hdr Host localhost\n"
    "  # One refused connection or 5xx is enough, until the next check: a dead server is always the least busy one.\n"
    "  default-server inter 1s fall 3 rise 1 agent-inter 1s observe layer7 error-limit 1 on-error mark-down\n";

/// The lines of one backend's servers.
std::string server_lines(const FarmOptions& farm, const char* more) {
  std::string lines;
  for (int i = 1; i <= farm.servers; ++i)
    lines += str("  server s", i, " ", farm.host, ":", farm.port + i, " check agent-check agent-port ",
                 farm.port + 100 + i, more, "\n");
  return lines;
}

std::string frontend(const FarmOptions& farm) {
  return str("frontend sfumato\n  bind ", farm.host, ":", farm.port,
             "\n"
             "  log global\n  option httplog\n"
             "  acl draws path_beg /v1/images/ /sdapi/v1/txt2img /sdapi/v1/img2img\n"
             "  http-request return status 429 content-type application/json hdr Retry-After 5 string ",
             kFull, " if draws { queue(draw) ge ", kWaiting * farm.servers,
             " }\n"
             "  use_backend draw if draws\n"
             "  default_backend rest\n\n");
}

/// A job is known to the server that took it, whose name begins its id.
std::string job_lines(const FarmOptions& farm) {
  std::string lines;
  for (int i = 1; i <= farm.servers; ++i) lines += str("  use-server s", i, " if { path_beg /api/jobs/s", i, "- }\n");
  return lines;
}

}  // namespace

std::string haproxy_config(const FarmOptions& farm) {
  return str(kHead, frontend(farm),
             "# Requests that last as long as their picture: one a server, the others wait here.\n"
             "backend draw\n  balance ",
             farm.balance, "\n", kCheck, server_lines(farm, " maxconn 1"),
             "\n# The page, jobs, health, metrics. A job's id begins with its server.\n"
             "backend rest\n  balance random\n",
             kCheck, job_lines(farm), server_lines(farm, ""),
             "\n# What goes on: / for people, /metrics for Prometheus. Only from this machine.\n"
             "frontend statistics\n  bind 127.0.0.1:",
             farm.port + 100,
             "\n"
             "  http-request use-service prometheus-exporter if { path /metrics }\n"
             "  stats enable\n  stats uri /\n  stats refresh 5s\n");
}

}  // namespace sfumato
