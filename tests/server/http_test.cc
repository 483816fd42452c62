// HTTP itself: what is refused, and what bad requests come to.
#include <random>
#include <thread>

#include "base/strings.h"
#include "tests/server/serve_fixture.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;

class ServeHttp : public ServeTest {};

TEST_F(ServeHttp, AnswersWhatItHas) {
  serve();
  for (const char* path :
       {"/", "/health/live", "/health/ready", "/metrics", "/openapi.json", "/api/models", "/api/options"})
    EXPECT_EQ(ask(port_, "GET", path).status, 200) << path;
  EXPECT_THAT(ask(port_, "GET", "/").headers.at("content-security-policy"), ::testing::HasSubstr("default-src 'self'"));
  const Json openapi = ask(port_, "GET", "/openapi.json").json();
  for (const char* path : {"/api/jobs", "/v1/images/generations", "/sdapi/v1/txt2img", "/health/ready"})
    EXPECT_TRUE(openapi["paths"].contains(path)) << path;
  EXPECT_EQ(ask(port_, "GET", "/nothing").status, 404);
  EXPECT_EQ(ask(port_, "PUT", "/api/jobs").status, 405);
  Connection head(port_);
  head.send(http_text("HEAD", "/health/live"));
  EXPECT_EQ(head.receive_head().status, 200);
  head.send(http_text("GET", "/health/live", "", {"X-Request-Id: mine-1"}));  // the connection is kept, without a body
  const Answer answer = head.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("x-request-id"), "mine-1");
}

TEST_F(ServeHttp, RefusesForeignPagesAndNames) {
  serve();
  const auto status = [&](const Headers& headers) { return ask(port_, "GET", "/api/models", "", headers).status; };
  EXPECT_EQ(status({str("Host: localhost:", port_)}), 200);
  EXPECT_EQ(status({"Host: evil.example"}), 403);
  EXPECT_EQ(status({"Host: 127.0.0.1.evil.example"}), 403);
  EXPECT_EQ(status({str("Host: localhost:", port_), str("Origin: http://localhost:", port_)}), 200);
  EXPECT_EQ(status({"Origin: http://evil.example"}), 403);
  EXPECT_EQ(status({"Origin: null"}), 403);
  EXPECT_FALSE(ask(port_, "GET", "/api/models").headers.contains("access-control-allow-origin"));
}

TEST_F(ServeHttp, AsksForAKey) {
  const std::string keys = (folder_ / "keys").string();
  FILE* file = fopen(keys.c_str(), "w");
  fputs("first-key-0123456789\nsecond-key-0123456789\n", file);
  fclose(file);
  serve({"--api-key-file", keys});
  const auto status = [&](const std::string& path, const Headers& headers) {
    return ask(port_, "GET", path, "", headers).status;
  };
  EXPECT_EQ(status("/v1/models", {}), 401);
  EXPECT_EQ(status("/v1/models", {"Authorization: Bearer wrong"}), 401);
  EXPECT_EQ(status("/v1/models", {"Authorization: Bearer first-key-012345678"}), 401);
  EXPECT_EQ(status("/v1/models", {"Authorization: Bearer second-key-0123456789"}), 200);
  EXPECT_EQ(status("/sdapi/v1/options", {"Authorization: Basic bWU6Zmlyc3Qta2V5LTAxMjM0NTY3ODk="}), 200);
  EXPECT_EQ(post(port_, "/api/jobs", job()).status, 401);
  EXPECT_EQ(status("/health/ready", {}), 200);
  EXPECT_EQ(status("/", {}), 200);
}

TEST_F(ServeHttp, Limits) {
  serve({"--max-body", "10000"});
  EXPECT_EQ(ask(port_, "POST", "/api/jobs", std::string(10001, ' ')).status, 413);
  Connection chunked(port_);
  chunked.send("POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n2ee0\r\n" +
               std::string(12000, ' ') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.receive().status, 413);
  EXPECT_EQ(ask(port_, "GET", "/", "", {"X: " + std::string(100'000, 'x')}).status, 431);
  EXPECT_EQ(post(port_, "/api/jobs", job({{"steps", 1001}})).status, 400);
  EXPECT_EQ(post(port_, "/api/jobs", job({{"batch_count", 11}})).status, 422);
  EXPECT_EQ(post(port_, "/api/jobs", job({{"width", 4096}, {"height", 4096}})).status, 422);
}

TEST_F(ServeHttp, ReadsOneRequestWhereOthersMightReadTwo) {
  serve();
  const std::string body = job().dump(), head = "POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string length = str("Content-Length: ", body.size(), "\r\n");
  const std::string chunks = str(std::hex, body.size(), std::dec, "\r\n", body, "\r\n0\r\n\r\n");
  for (const std::string& text : {
           head + length + "Transfer-Encoding: chunked\r\n\r\n" + chunks,
           head + length + str("Content-Length: ", body.size() + 1, "\r\n\r\n") + body,
           head + "Content-Length: -1\r\n\r\n" + body,
           head + "Content-Length: +5\r\n\r\n" + body,
           head + "Content-Length: 99999999999999999999999\r\n\r\n" + body,
           head + str("Content-Length : ", body.size(), "\r\n\r\n") + body,
           head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
           head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
           std::string("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \0\r\n\r\n", 41),
           std::string("GET  / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
           std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11) + std::string(200, '\0'),
       }) {
    Connection connection(port_);
    connection.send(text);
    connection.finish_sending();
    const Answer answer = connection.receive();
    EXPECT_TRUE(answer.status == 0 || answer.status == 400 || answer.status == 413) << answer.status << "\n" << text;
    EXPECT_EQ(connection.receive().status, 0) << "a second answer to\n" << text;
  }
  EXPECT_EQ(metric("sfumato_jobs_total{state=\"submitted\"}"), -1);
}

// Valid bodies with bytes changed, cut out and repeated; tools/fuzz_server.py has many more kinds.
TEST_F(ServeHttp, ChangedBytesAreTheClientsFault) {
  constexpr int kRequests = 3000;
  serve({"--max-steps", "20", "--max-pixels", "16384"});
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const std::pair<const char*, std::string> valid[] = {
      {"/api/jobs",
       job({{"preview", false}, {"cfg_scale", 7.5}, {"sampler", "Euler a"}, {"scheduler", "karras"}}).dump()},
      {"/v1/images/generations",
       Json({{"prompt", "x"}, {"n", 1}, {"size", "64x64"}, {"steps", 1}, {"response_format", "b64_json"}}).dump()},
      {"/sdapi/v1/txt2img", job({{"sampler_name", "Euler"}, {"override_settings", Json::object()}}).dump()},
      {"/sdapi/v1/png-info", Json({{"image", "data:image/png;base64,iVBORw0KGgo="}}).dump()}};
  std::map<int, int> statuses;
  for (int i = 0; i < kRequests; ++i) {
    auto [path, body] = valid[below(std::size(valid))];
    const bool changes_head = below(4) == 0;
    std::string text = changes_head ? http_text("POST", path, body, {"Connection: close"}) : body;
    for (size_t n = 1 + below(4); n > 0 && !text.empty(); --n) {
      const size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), 1 + below(16)));
          break;
        default:
          text.insert(at, std::string(1 + below(20), "0-9.eE\"{}[]:,\\"[below(14)]));
      }
    }
    Connection connection(port_);
    connection.send(changes_head ? text : http_text("POST", path, text, {"Connection: close"}));
    connection.finish_sending();
    const Answer answer = connection.receive();
    ++statuses[answer.status];
    EXPECT_TRUE(answer.status < 500 || answer.headers.contains("retry-after")) << answer.status << " to\n" << text;
    if (answer.status == 202) ask(port_, "DELETE", "/api/jobs/" + answer.json()["id"].get<std::string>());
  }
  EXPECT_GT(statuses[400], kRequests / 3);
  EXPECT_EQ(metric("sfumato_worker_restarts_total"), 0);
  const std::string id = submit(job());
  EXPECT_EQ(finished(id)["status"], "done");
  EXPECT_EQ(picture(id), alone());
}

TEST_F(ServeHttp, SlowConnectionsHinderNobody) {
  serve();
  std::vector<std::unique_ptr<Connection>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<Connection>(port_));
    slow.back()->send("POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n");
  }
  EXPECT_EQ(ask(port_, "GET", "/health/live").status, 200);
  EXPECT_EQ(finished(submit(job()))["status"], "done");
}

}  // namespace
}  // namespace sfumato
