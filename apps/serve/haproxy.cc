#include "apps/serve/haproxy.h"

#include "base/strings.h"

namespace sfumato {
namespace {

constexpr const char* kHead =
    R"(# HAProxy 2.6 or later, made by `sfumato serve --print-haproxy`; docs/farm.md explains it.
global
  log stderr format raw local0
  maxconn 8000
  # A request is kept whole to be sent again; one with a picture has to fit.
  tune.bufsize 1048576

defaults
  mode http
  log global
  option httplog
  option http-keep-alive
  # A picture may take many minutes: only a client or server that is gone ends the wait.
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout queue 1h
  timeout http-request 30s
  timeout http-keep-alive 60s
  timeout tunnel 1h
  # Sent again only where no picture was begun, or the server died with it: refused, closed without a byte, or
  # turned away by a server that drains. Never after a timeout: it might be drawn twice.
  retries 3
  retry-on conn-failure empty-response 503
  option redispatch 1
  option http-buffer-request

)";

/// The lines of one backend's servers.
std::string server_lines(const FarmOptions& farm, const char* more) {
  std::string lines;
  for (int i = 1; i <= farm.servers; ++i)
    lines += str("  server s", i, " ", farm.host, ":", farm.port + i, " check agent-check agent-port ",
                 farm.port + 100 + i, more, "\n");
  return lines;
}

constexpr const char* kCheck =
    "  option httpchk GET /health/ready\n"
    "  http-check send hdr Host localhost\n"
    "  default-server inter 1s fall 2 rise 1 agent-inter 1s\n";

}  // namespace

std::string haproxy_config(const FarmOptions& farm) {
  std::string out = kHead;
  out += str("frontend sfumato\n  bind ", farm.host, ":", farm.port,
             "\n"
             "  acl draws path_beg /v1/images/ /sdapi/v1/txt2img /sdapi/v1/img2img\n"
             "  use_backend draw if draws\n"
             "  use_backend statistics if { path_beg /haproxy }\n"
             "  default_backend rest\n\n");
  out += str(
      "# Requests that last as long as their picture: one a server, the others wait here.\nbackend draw\n  balance ",
      farm.balance, "\n", kCheck, server_lines(farm, " maxconn 1"), "\n");
  out += str("# The page, jobs, health, metrics. A job's id begins with its server.\nbackend rest\n  balance random\n",
             kCheck);
  for (int i = 1; i <= farm.servers; ++i) out += str("  use-server s", i, " if { path_beg /api/jobs/s", i, "- }\n");
  out +=
      str(server_lines(farm, ""), "\nbackend statistics\n  stats enable\n  stats uri /haproxy\n  stats refresh 5s\n");
  return out;
}

}  // namespace sfumato
