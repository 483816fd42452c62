#include "server/gate.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/strings.h"
#include "server/router.h"

namespace sfumato::server {
namespace {

HttpRequest request_with(std::map<std::string, std::string> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

/// 0: let through.
unsigned status_of(const GateOptions& gate, std::map<std::string, std::string> headers, bool is_open = false) {
  const auto refused = refuse(gate, request_with(std::move(headers)), is_open);
  return refused ? refused->status : 0;
}

TEST(Gate, Keys) {
  const GateOptions gate{{"first-key-0123456789", "second-key-0123456789"}, {}};
  EXPECT_EQ(status_of({}, {}), 0u);
  EXPECT_EQ(status_of(gate, {}), 401u);
  EXPECT_EQ(status_of(gate, {}, /*is_open=*/true), 0u);
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "Bearer x", "Bearer first-key-012345678", "Bearer first-key-01234567890",
        "Basic first-key-0123456789", "Basic !", "Basic eA==", "first-key-0123456789", "Digest x"})
    EXPECT_EQ(status_of(gate, {{"authorization", wrong}}), 401u) << wrong;
  EXPECT_EQ(status_of(gate, {{"authorization", "Bearer first-key-0123456789"}}), 0u);
  EXPECT_EQ(status_of(gate, {{"authorization", "bearer  second-key-0123456789 "}}), 0u);
  EXPECT_EQ(status_of(gate, {{"authorization", "Basic bWU6Zmlyc3Qta2V5LTAxMjM0NTY3ODk="}}), 0u);  // me:first-key-...
}

TEST(Gate, HostsAndOrigins) {
  const GateOptions gate{{}, {"localhost", "127.0.0.1", "[::1]"}};
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:7860", "[::1]:7860", "[::1]"})
    EXPECT_EQ(status_of(gate, {{"host", host}}), 0u) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil", "localhost@evil", "[::1", "[::2]"})
    EXPECT_EQ(status_of(gate, {{"host", host}}), 403u) << host;
  EXPECT_EQ(status_of(gate, {{"host", "localhost:7860"}, {"origin", "http://localhost:7860"}}), 0u);
  for (const char* origin :
       {"null", "http://evil.example", "http://localhost", "http://localhost:78600", "localhost:7860"})
    EXPECT_EQ(status_of(gate, {{"host", "localhost:7860"}, {"origin", origin}}), 403u) << origin;
  EXPECT_EQ(status_of({}, {{"host", "any.example"}}), 0u);
}

TEST(Gate, KeyFiles) {
  std::string path = ::testing::TempDir() + "keys_XXXXXX";
  ::close(mkstemp(path.data()));
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_keys(path);
  };
  EXPECT_EQ(read("0123456789abcdef\n\n  fedcba9876543210\r\n").value(),
            (std::vector<std::string>{"0123456789abcdef", "fedcba9876543210"}));
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("\n \n"));
  EXPECT_FALSE(read("short\n"));
  std::remove(path.c_str());
  EXPECT_FALSE(read_keys(path));
}

TEST(Router, FindsByMethodAndPath) {
  Router router;
  for (const char* path : {"/a", "/a/{}", "/a/{}/b", "/a/{}/c/{}"}) router.add({"GET", path, nullptr});
  router.add({"POST", "/a", nullptr});
  const auto find = [&](const char* method, const char* path) {
    HttpRequest request;
    request.method = method;
    request.path = path;
    unsigned status = 0;
    const Route* route = router.find(request, status);
    return route ? route->path + " " + join(request.parameters, " ") : std::to_string(status);
  };
  EXPECT_EQ(find("GET", "/a"), "/a ");
  EXPECT_EQ(find("HEAD", "/a"), "/a ");
  EXPECT_EQ(find("GET", "/a/x"), "/a/{} x");
  EXPECT_EQ(find("GET", "/a/x/b"), "/a/{}/b x");
  EXPECT_EQ(find("GET", "/a/x/c/y"), "/a/{}/c/{} x y");
  EXPECT_EQ(find("PUT", "/a"), "405");
  EXPECT_EQ(find("POST", "/a/x"), "405");
  for (const char* path : {"", "/", "/b", "/a/", "/a//b", "/a/x/c", "/a/x/y/z", "/a/x/c/", "/a//c/y"})
    EXPECT_EQ(find("GET", path), "404") << path;
}

}  // namespace
}  // namespace sfumato::server
