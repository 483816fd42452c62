#pragma once
// HTTP as handlers see it; connections, limits and timeouts are in http.cc, by Boost.Beast.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sfumato::server {

template <class T>
using Awaitable = boost::asio::awaitable<T>;

struct HttpRequest {
  std::string id;      ///< the client's X-Request-Id, or one of ours
  std::string method;  ///< "GET"
  std::string path;    ///< without the query, percent-decoded
  std::string query;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::vector<std::string> parameters;  ///< what stands for each {} of the route's path

  std::string_view header(const std::string& name) const;
};

/// A server-sent event stream. False: the client is gone.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual Awaitable<bool> send(std::string_view event, const nlohmann::json& data) = 0;
  /// A comment, so that nobody on the way takes the silence for death.
  virtual Awaitable<bool> keep_alive() = 0;
};

struct HttpResponse {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// Instead of a body: writes events until it returns.
  std::function<Awaitable<void>(EventStream&)> events = {};
};

HttpResponse json_response(const nlohmann::ordered_json& body, unsigned status = 200);

/// {"error": {message, type, param, code}}, the form that OpenAI's clients read. `param`: the field at fault.
HttpResponse error_response(unsigned status, std::string_view message, std::string_view param = "",
                            std::string_view code = "");
/// 400 for what the client got wrong, 507 for too little memory, 500 for the rest.
HttpResponse error_response(const Error& error, std::string_view param = "");

/// Ends when the client has closed its connection; for handlers that wait.
class ClientWatch {
 public:
  virtual ~ClientWatch() = default;
  virtual Awaitable<void> closed() = 0;
};

using Handler = std::function<Awaitable<HttpResponse>(HttpRequest&, ClientWatch&)>;

struct HttpLimits {
  size_t header_bytes = 16 << 10;
  size_t body_bytes = size_t{64} << 20;
  size_t connections = 2048;
  std::chrono::seconds header_time{15}, body_time{120}, idle_time{60}, write_time{60};
};

/// Listens on an address, "localhost" or an IP; port 0: any. `option` is what chose the port, for the message.
Result<boost::asio::ip::tcp::acceptor> open_acceptor(boost::asio::io_context& loop, const std::string& host, int port,
                                                     std::string_view option);

class HttpServer {
 public:
  /// Called when the answer is known, before it is written.
  using Log = std::function<void(const HttpRequest&, const HttpResponse&, double seconds)>;
  HttpServer(boost::asio::io_context& loop, HttpLimits limits, Handler handler, Log log)
      : loop_(loop), limits_(limits), handler_(std::move(handler)), log_(std::move(log)) {}

  /// Begins to listen. Port 0: any; `port` tells which. Errors: the address is not one, or is taken.
  Result<void> listen(const std::string& host, int port);
  int port() const { return port_; }
  /// No new connections; those that there are end with their next answer.
  void drain();
  size_t connections() const { return connections_; }

 private:
  class Session;
  Awaitable<void> accept();

  boost::asio::io_context& loop_;
  HttpLimits limits_;
  Handler handler_;
  Log log_;
  std::optional<boost::asio::ip::tcp::acceptor> acceptor_;
  int port_ = 0;
  size_t connections_ = 0;
  bool draining_ = false;
};

}  // namespace sfumato::server
