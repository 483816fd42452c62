#pragma once
// A plain HTTP client over a blocking socket: it can send what a well-behaved one never would.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sfumato {

struct Answer {
  int status = 0;                                   ///< 0: the connection was closed without one
  std::map<std::string, std::string> headers = {};  ///< names in lower case
  std::string body = {};

  /// Of a body that should be JSON; anything else is a discarded value.
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  /// The message of {"error": {...}}.
  std::string error() const;
};

/// A connection to 127.0.0.1, closed at the end.
class Connection {
 public:
  explicit Connection(int port);
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(const std::string& bytes);
  /// The next answer, whole; a chunked body is put together.
  Answer receive();
  /// The next server-sent event of a chunked answer whose head was read: its name and data. "": the stream is over.
  std::pair<std::string, nlohmann::json> next_event();
  /// The head of an answer alone.
  Answer receive_head();
  /// Nothing more will be sent.
  void finish_sending();
  void close();

 private:
  bool fill();  ///< false: the other end closed
  std::string take_line();
  std::string take(size_t bytes);

  int socket_ = -1;
  std::string buffer_, events_;
};

using Headers = std::vector<std::string>;
std::string http_text(const std::string& method, const std::string& path, const std::string& body = "",
                      const Headers& headers = {});

/// One request on a connection of its own.
Answer ask(int port, const std::string& method, const std::string& path, const std::string& body = "",
           const Headers& headers = {});
Answer post(int port, const std::string& path, const nlohmann::json& body);

}  // namespace sfumato
