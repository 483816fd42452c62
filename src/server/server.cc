#include "server/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <csignal>

#include "base/strings.h"
#include "server/router.h"

namespace sfumato::server {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Json = nlohmann::ordered_json;

/// The first part of a path, if it is one of ours: labels must not grow with what strangers ask for.
std::string family_of(const std::string& path) {
  for (const char* family : {"v1", "sdapi", "api", "health", "metrics"})
    if (path.starts_with(std::string("/") + family)) return family;
  return path.empty() ? "none" : "page";
}

class Server {
 public:
  explicit Server(ServerOptions options)
      : options_(std::move(options)),
        queue_(loop_.get_executor(), options_.queue),
        workers_(loop_, options_.workers, queue_,
                 [this](const char* event, Json fields) { log(event, std::move(fields)); }),
        service_(std::move(options_.models), options_.requests, queue_, workers_),
        http_(
            loop_, options_.http, [this](HttpRequest& request, ClientWatch& client) { return handle(request, client); },
            [this](const HttpRequest& request, const HttpResponse& response, double seconds) {
              log_request(request, response, seconds);
            }) {
    add_job_routes(router_, service_);
    add_openai_routes(router_, service_);
    add_a1111_routes(router_, service_);
    add_about_routes(router_, service_);
    add_page_routes(router_);
  }

  Result<void> run() {
    TRY(http_.listen(options_.host, options_.port));
    if (options_.agent_port > 0)
      asio::co_spawn(loop_, answer_agent(TRY(open_acceptor(loop_, options_.host, options_.agent_port, "--agent-port"))),
                     asio::detached);
    asio::co_spawn(loop_, watch_signals(), asio::detached);
    workers_.start();
    log("listening", {{"host", options_.host}, {"port", http_.port()}, {"workers", options_.workers.count}});
    loop_.run();
    if (workers_.fatal()) return *workers_.fatal();
    return {};
  }

 private:
  void log(const char* event, Json fields) const {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    Json line = {{"time", std::chrono::duration<double>(now).count()}, {"event", event}};
    line.update(fields);
    if (options_.log) options_.log(line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  void log_request(const HttpRequest& request, const HttpResponse& response, double seconds) {
    const std::string family = family_of(request.path);
    ++service_.counters().requests[{family, response.status}];
    if (family == "health" && response.status == 200) return;  // every few seconds, for ever
    log("request", {{"id", request.id},
                    {"method", request.method},
                    {"path", printable(request.path)},
                    {"status", response.status},
                    {"seconds", seconds}});
  }

  Awaitable<HttpResponse> handle(HttpRequest& request, ClientWatch& client) {
    unsigned status = 0;
    const Route* route = router_.find(request, status);
    if (std::optional<HttpResponse> refused = refuse(options_.gate, request, route && route->is_open))
      co_return *std::move(refused);
    if (!route)
      co_return error_response(
          status, str("[server.path] there is no ", printable(request.method), " ", printable(request.path)));
    co_return co_await safely(route->handler, request, client);
  }

  /// A handler that throws is a bug of ours: 500, and the server lives.
  Awaitable<HttpResponse> safely(const Handler& handler, HttpRequest& request, ClientWatch& client) {
    std::string what;
    try {
      co_return co_await handler(request, client);
    } catch (const std::bad_alloc&) {
      what = "out of memory";
    } catch (const std::exception& error) {
      what = error.what();
    }
    log("fault", {{"id", request.id}, {"what", what}});
    co_return error_response(500, "[server] an internal fault; the log has the request's id");
  }

  Awaitable<void> watch_signals() {
    asio::signal_set signals(loop_, SIGTERM, SIGINT);
    co_await signals.async_wait(asio::use_awaitable);
    log("draining", {{"queued", queue_.waiting()}, {"running", queue_.running().size()}});
    service_.drain();
    asio::co_spawn(loop_, drain(), asio::detached);
    co_await signals.async_wait(asio::use_awaitable);
    loop_.stop();
  }

  /// First the balancer must hear that this server ends; then the jobs end; then their answers are fetched.
  Awaitable<void> drain() {
    constexpr std::chrono::milliseconds kLook{50};
    const auto pause = [this](std::chrono::milliseconds time) -> Awaitable<void> {
      asio::steady_timer timer(loop_, time);
      co_await timer.async_wait(asio::use_awaitable);
    };
    co_await pause(options_.drain_delay);
    service_.close();
    while (!service_.is_idle()) co_await pause(kLook);
    http_.drain();
    constexpr int kMostLooks = 40;  // two seconds for answers to go out
    for (int i = 0; i < kMostLooks && http_.connections() > 0; ++i) co_await pause(kLook);
    log("stopped", Json::object());
    loop_.stop();
  }

  /// HAProxy's agent protocol: a line with a state and a weight.
  Awaitable<void> answer_agent(tcp::acceptor acceptor) {
    for (;;) {
      boost::system::error_code failed;
      tcp::socket socket(loop_);
      co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, failed));
      if (failed) continue;
      const std::string line = agent_line();
      co_await asio::async_write(socket, asio::buffer(line), asio::redirect_error(asio::use_awaitable, failed));
    }
  }

  std::string agent_line() const {
    if (service_.is_draining()) return "drain\n";
    if (!workers_.is_ready()) return "down\n";
    // Half the weight for each job that waits here already.
    const size_t waiting = std::min<size_t>(queue_.waiting(), 6);
    return str("ready up ", std::max<size_t>(1, 100u >> waiting), "%\n");
  }

  ServerOptions options_;
  asio::io_context loop_{1};
  JobQueue queue_;
  Workers workers_;
  Service service_;
  Router router_;
  HttpServer http_;
};

}  // namespace

Result<void> run_server(ServerOptions options) {
  std::signal(SIGPIPE, SIG_IGN);
  return Server(std::move(options)).run();
}

}  // namespace sfumato::server
