#include "server/http.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>

#include "base/strings.h"
#include "server/random_id.h"

namespace sfumato::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using boost::system::error_code;

/// The client's own id, if it is one that a log can hold.
std::string request_id(std::string_view given) {
  constexpr size_t kMost = 128;
  const bool good = !given.empty() && given.size() <= kMost && std::all_of(given.begin(), given.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
  return good ? std::string(given) : random_id();
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    out += is_code ? static_cast<char>(16 * hex(text[i + 1]) + hex(text[i + 2])) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

HttpRequest from_beast(http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const size_t mark = target.find('?');
  request.path = percent_decoded(target.substr(0, mark));
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  for (const auto& field : message)
    request.headers[lowercase_ascii(std::string_view(field.name_string().data(), field.name_string().size()))] =
        std::string(field.value());
  request.body = std::move(message.body());
  request.id = request_id(request.header("x-request-id"));
  return request;
}

/// What to answer to a message that is none; nothing if the connection is just over.
std::optional<HttpResponse> answer_to(error_code error) {
  if (error == http::error::body_limit) return error_response(413, "[server.http] the body is too large");
  if (error == http::error::header_limit) return error_response(431, "[server.http] the header is too large");
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error == beast::error::timeout) return error_response(408, "[server.http] the request took too long");
  if (error.category() == http::make_error_code(http::error::bad_method).category())
    return error_response(400, str("[server.http] this is not HTTP: ", error.message()));
  return std::nullopt;
}

}  // namespace

std::string_view HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

HttpResponse json_response(const nlohmann::ordered_json& body, unsigned status) {
  return {status, "application/json", body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpResponse error_response(unsigned status, std::string_view message, std::string_view param, std::string_view code) {
  using Json = nlohmann::ordered_json;
  const Json field = param.empty() ? Json() : Json(param), name = code.empty() ? Json() : Json(code);
  const char* type = status >= 500 ? "server_error" : status == 401 ? "authentication_error" : "invalid_request_error";
  return json_response({{"error", {{"message", message}, {"type", type}, {"param", field}, {"code", name}}}}, status);
}

HttpResponse error_response(const Error& error, std::string_view param) {
  const unsigned status = error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kBadInput ? 400
                          : error.kind == ErrorKind::kOutOfMemory                               ? 507
                                                                                                : 500;
  return error_response(status, error.message, param);
}

/// One connection: requests one after the other.
class HttpServer::Session final : public ClientWatch, public EventStream {
 public:
  Session(HttpServer& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {}

  Awaitable<void> run() {
    ++server_.connections_;
    while (co_await one_request()) {
    }
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    --server_.connections_;
  }

  Awaitable<void> closed() override {
    constexpr std::chrono::milliseconds kPause{500};  // while bytes of the next request hide the end
    error_code failed;
    for (;;) {
      co_await stream_.socket().async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, failed));
      char byte;
      if (failed || recv(stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) co_return;
      asio::steady_timer timer(stream_.get_executor(), kPause);
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, failed));
      if (failed) co_return;
    }
  }

  // Not coroutines themselves: gcc 12 destroys some temporaries of a co_await expression twice.
  Awaitable<bool> send(std::string_view event, const nlohmann::json& data) override {
    const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return write_chunk(str("event: ", event, "\ndata: ", text, "\n\n"));
  }
  Awaitable<bool> keep_alive() override { return write_chunk(": still here\n\n"); }

 private:
  /// False: the connection is over.
  Awaitable<bool> one_request() {
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<uint32_t>(server_.limits_.header_bytes));
    parser.body_limit(server_.limits_.body_bytes);
    error_code failed;
    auto token = asio::redirect_error(asio::use_awaitable, failed);
    stream_.expires_after(requests_++ == 0 ? server_.limits_.header_time : server_.limits_.idle_time);
    co_await http::async_read_header(stream_, buffer_, parser, token);
    stream_.expires_after(server_.limits_.body_time);
    if (!failed && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      co_await http::async_write(stream_, go_on, token);
    }
    if (!failed) co_await http::async_read(stream_, buffer_, parser, token);
    if (failed) {
      if (auto answer = answer_to(failed)) {
        HttpRequest unknown;
        unknown.id = random_id();
        server_.log_(unknown, *answer, 0);
        co_await write(unknown, *answer, false, 11);
        co_await read_away();
      }
      co_return false;
    }
    const bool keep = parser.get().keep_alive() && !server_.draining_;
    const unsigned version = parser.get().version();
    HttpRequest request = from_beast(parser.get());
    const Clock::time_point begin = Clock::now();
    stream_.expires_never();
    HttpResponse response = co_await server_.handler_(request, *this);
    server_.log_(request, response, std::chrono::duration<double>(Clock::now() - begin).count());
    if (response.events) co_return co_await write_events(request, response);
    co_return co_await write(request, response, keep && !server_.draining_, version);
  }

  /// Closing with unread bytes would reset the connection, and a client that still sends would miss the answer. What
  /// it sends is read for a moment, and forgotten.
  Awaitable<void> read_away() {
    constexpr std::chrono::seconds kLimit{2};
    constexpr size_t kBytes = 64 << 10;
    error_code failed;
    stream_.socket().shutdown(tcp::socket::shutdown_send, failed);
    stream_.expires_after(kLimit);
    failed = {};
    for (std::string sink(kBytes, '\0'); !failed;)
      co_await stream_.async_read_some(asio::buffer(sink), asio::redirect_error(asio::use_awaitable, failed));
  }

  template <class Message>
  void set_headers(Message& message, const HttpRequest& request, const HttpResponse& response) const {
    message.set(http::field::server, "sfumato");
    message.set(http::field::content_type, response.type);
    message.set("X-Request-Id", request.id);
    message.set("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : response.headers) message.set(name, value);
  }

  Awaitable<bool> write(const HttpRequest& request, HttpResponse& response, bool keep, unsigned version) {
    http::response<http::string_body> message(static_cast<http::status>(response.status), version);
    set_headers(message, request, response);
    message.body() = std::move(response.body);
    message.keep_alive(keep);
    message.prepare_payload();
    if (request.method == "HEAD") message.body().clear();  // its length stays
    error_code failed;
    stream_.expires_after(server_.limits_.write_time);
    co_await http::async_write(stream_, message, asio::redirect_error(asio::use_awaitable, failed));
    co_return keep && !failed;
  }

  Awaitable<bool> write_events(const HttpRequest& request, const HttpResponse& response) {
    http::response<http::empty_body> head(http::status::ok, 11);
    set_headers(head, request, response);
    head.set(http::field::content_type, "text/event-stream");
    head.set(http::field::cache_control, "no-cache");
    head.set("X-Accel-Buffering", "no");
    head.keep_alive(false);
    head.chunked(true);
    http::response_serializer<http::empty_body> serializer(head);
    error_code failed;
    co_await http::async_write_header(stream_, serializer, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return false;
    co_await response.events(*this);
    stream_.expires_after(server_.limits_.write_time);
    co_await asio::async_write(stream_, http::make_chunk_last(), asio::redirect_error(asio::use_awaitable, failed));
    co_return false;
  }

  Awaitable<bool> write_chunk(std::string text) {
    error_code failed;
    stream_.expires_after(server_.limits_.write_time);
    co_await asio::async_write(stream_, http::make_chunk(asio::buffer(text)),
                               asio::redirect_error(asio::use_awaitable, failed));
    stream_.expires_never();
    co_return !failed;
  }

  HttpServer& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  int requests_ = 0;
};

Result<tcp::acceptor> open_acceptor(asio::io_context& loop, const std::string& host, int port,
                                    std::string_view option) {
  error_code failed;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, failed);
  if (failed) return usage_error(str("[server.listen] --host expected an IP address, got \"", printable(host), "\""));
  tcp::acceptor acceptor(loop);
  const tcp::endpoint endpoint(address, static_cast<uint16_t>(port));
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (failed)
    return runtime_error(str("[server.listen] cannot listen on ", host, ":", port, ": ", failed.message(),
                             "; is another server there? ", option, " takes another"));
  return acceptor;
}

Result<void> HttpServer::listen(const std::string& host, int port) {
  acceptor_ = TRY(open_acceptor(loop_, host, port, "--port"));
  port_ = acceptor_->local_endpoint().port();
  asio::co_spawn(loop_, accept(), asio::detached);
  return {};
}

Awaitable<void> HttpServer::accept() {
  while (!draining_) {
    error_code failed;
    tcp::socket socket(loop_);
    co_await acceptor_->async_accept(socket, asio::redirect_error(asio::use_awaitable, failed));
    if (failed && !draining_) {  // out of file descriptors: give some time to come back
      asio::steady_timer timer(loop_, std::chrono::milliseconds(50));
      co_await timer.async_wait(asio::use_awaitable);
      continue;
    }
    if (failed || connections_ >= limits_.connections) continue;  // the socket closes
    socket.set_option(tcp::no_delay(true), failed);
    auto session = std::make_shared<Session>(*this, std::move(socket));
    asio::co_spawn(
        loop_, [session]() -> Awaitable<void> { co_await session->run(); }, asio::detached);
  }
}

void HttpServer::drain() {
  draining_ = true;
  error_code ignored;
  if (acceptor_) acceptor_->close(ignored);
}

}  // namespace sfumato::server
