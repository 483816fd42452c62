#include "tests/server/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.h"

namespace sfumato {

std::string Answer::error() const {
  const nlohmann::json parsed = json();
  if (!parsed.is_object() || !parsed.contains("error") || !parsed["error"].is_object()) return "";
  return parsed["error"].value("message", "");
}

Connection::Connection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  constexpr int kSeconds = 60;
  const timeval limit{kSeconds, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const int yes = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
}

void Connection::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Connection::finish_sending() {
  shutdown(socket_, SHUT_WR);
}

void Connection::send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t put = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (put <= 0) return;  // the other end has had enough; its answer says why
    sent += static_cast<size_t>(put);
  }
}

bool Connection::fill() {
  char bytes[1 << 16];
  const ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::string Connection::take_line() {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos)
    if (!fill()) return "";
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::string Connection::take(size_t bytes) {
  while (buffer_.size() < bytes && fill()) {
  }
  std::string out = buffer_.substr(0, bytes);
  buffer_.erase(0, out.size());
  return out;
}

Answer Connection::receive_head() {
  Answer answer;
  const std::string first = take_line();
  if (first.size() < 12) return answer;
  answer.status = std::atoi(first.substr(9, 3).c_str());
  for (std::string line = take_line(); !line.empty(); line = take_line()) {
    const size_t colon = line.find(':');
    answer.headers[lowercase_ascii(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
  }
  return answer;
}

Answer Connection::receive() {
  Answer answer = receive_head();
  constexpr int kContinue = 100;
  if (answer.status == kContinue) return receive();
  if (const auto length = answer.headers.find("content-length"); length != answer.headers.end()) {
    answer.body = take(std::stoul(length->second));
    return answer;
  }
  if (answer.headers["transfer-encoding"] != "chunked") return answer;
  for (size_t size; (size = std::strtoul(take_line().c_str(), nullptr, 16)) > 0;) {
    answer.body += take(size);
    take_line();
  }
  return answer;
}

std::pair<std::string, nlohmann::json> Connection::next_event() {
  for (;;) {
    const size_t end = events_.find("\n\n");
    if (end == std::string::npos) {
      const size_t size = std::strtoul(take_line().c_str(), nullptr, 16);
      if (size == 0) return {"", {}};
      events_ += take(size);
      take_line();
      continue;
    }
    std::string name;
    nlohmann::json data;
    for (const std::string& line : split(events_.substr(0, end), '\n')) {
      if (line.starts_with("event: ")) name = line.substr(7);
      if (line.starts_with("data: ")) data = nlohmann::json::parse(line.substr(6), nullptr, false);
    }
    events_.erase(0, end + 2);
    if (!name.empty() || !data.is_null()) return {name, data};  // else a comment
  }
}

std::string http_text(const std::string& method, const std::string& path, const std::string& body,
                      const Headers& headers) {
  std::string text = str(method, " ", path, " HTTP/1.1\r\n");
  bool has_host = false;
  for (const std::string& header : headers) {
    text += header + "\r\n";
    has_host |= header.starts_with("Host:");
  }
  if (!has_host) text += "Host: 127.0.0.1\r\n";
  if (!body.empty() || method == "POST") text += str("Content-Length: ", body.size(), "\r\n");
  return text + "\r\n" + body;
}

Answer ask(int port, const std::string& method, const std::string& path, const std::string& body,
           const Headers& headers) {
  Connection connection(port);
  connection.send(http_text(method, path, body, headers));
  return connection.receive();
}

Answer post(int port, const std::string& path, const nlohmann::json& body) {
  return ask(port, "POST", path, body.dump(), {"Content-Type: application/json"});
}

}  // namespace sfumato
