#include "tests/server/serve_fixture.h"

#include <algorithm>
#include <thread>

#include "base/strings.h"
#include "server/base64.h"

namespace sfumato {
namespace {

/// The events of a log so far; its last line may be half written.
std::vector<nlohmann::json> events_of(const std::string& log, const std::string& name) {
  std::vector<nlohmann::json> found;
  for (const std::string& line : split(log, '\n')) {
    nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object() && event.value("event", "") == name) found.push_back(std::move(event));
  }
  return found;
}

}  // namespace

bool eventually(const std::function<bool()>& is_so) {
  constexpr std::chrono::seconds kLimit{60};
  const auto begin = std::chrono::steady_clock::now();
  while (!is_so()) {
    if (std::chrono::steady_clock::now() - begin > kLimit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string bytes_of_base64(const std::string& text) {
  const auto bytes = server::from_base64("test", text);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? *bytes : "";
}

void ServeTest::SetUp() {
  std::string folder = ::testing::TempDir() + "sfumato_serve_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  folder_ = folder;
}

void ServeTest::TearDown() {
  if (program_) {
    EXPECT_EQ(stop().code, 0) << log();
    EXPECT_EQ(log().find("\"fault\""), std::string::npos) << log();
  }
  std::filesystem::remove_all(folder_);
}

void ServeTest::serve(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"serve", "--port", "0", "-t", "1", "-m", "tiny=" + tiny_model()};
  if (std::find(more.begin(), more.end(), "--max-steps") == more.end())
    words.insert(words.end(), {"--max-steps", "1000"});
  words.insert(words.end(), more.begin(), more.end());
  program_ = std::make_unique<RunningProgram>(folder_, words);
  ASSERT_TRUE(eventually([&] { return !events_of(log(), "worker ready").empty(); })) << log();
  port_ = events_of(log(), "listening").at(0).at("port");
}

Outcome ServeTest::stop() {
  program_->send(SIGTERM);
  const Outcome outcome = program_->wait();
  program_.reset();
  return outcome;
}

pid_t ServeTest::worker() const {
  return events_of(log(), "worker started").back().at("pid");
}

double ServeTest::metric(const std::string& name) const {
  for (const std::string& line : split(ask(port_, "GET", "/metrics").body, '\n'))
    if (line.starts_with(name + " ")) return std::atof(line.substr(name.size() + 1).c_str());
  return -1;
}

nlohmann::json ServeTest::job(const nlohmann::json& more) const {
  nlohmann::json body = {{"prompt", "a red apple"}, {"width", 64}, {"height", 64}, {"steps", 3}, {"seed", 7}};
  body.update(more);
  return body;
}

std::string ServeTest::submit(const nlohmann::json& body) const {
  const Answer answer = post(port_, "/api/jobs", body);
  EXPECT_EQ(answer.status, 202) << answer.body;
  return answer.status == 202 ? answer.json().at("id") : "";
}

nlohmann::json ServeTest::state(const std::string& id) const {
  return ask(port_, "GET", "/api/jobs/" + id).json();
}

nlohmann::json ServeTest::finished(const std::string& id) const {
  nlohmann::json last;
  EXPECT_TRUE(eventually([&] {
    last = state(id);
    const std::string status = last.value("status", "");
    return status != "queued" && status != "running";
  })) << last;
  return last;
}

std::string ServeTest::picture(const std::string& id, int index) const {
  const Answer answer = ask(port_, "GET", str("/api/jobs/", id, "/images/", index));
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.body;
}

std::string ServeTest::alone(const std::vector<std::string>& more, const std::string& prompt) const {
  const std::filesystem::path folder = folder_ / "alone";
  std::filesystem::create_directories(folder);
  std::vector<std::string> words = {"generate",
                                    "-m",
                                    tiny_model(),
                                    "-p",
                                    prompt,
                                    "-W",
                                    "64",
                                    "-H",
                                    "64",
                                    "--steps",
                                    "3",
                                    "-s",
                                    "7",
                                    "-t",
                                    "1",
                                    "-o",
                                    (folder / "x.png").string()};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = RunningProgram(folder, words).wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return read_file(folder / "x.png");
}

}  // namespace sfumato
