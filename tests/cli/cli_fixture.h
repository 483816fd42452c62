#pragma once
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace sfumato {

/// A folder that is the test's own, and the program run in it.
class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "sfumato_cli_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Outcome run(const std::vector<std::string>& words, const Environment& more = {}) const {
    return RunningProgram(folder_, words, more).wait();
  }
  /// Draws with a tiny model in a moment: `words` are added.
  std::vector<std::string> tiny(std::vector<std::string> words) const {
    // One thread: the tests run beside one another.
    std::vector<std::string> all = {"a red apple", "-m", tiny_model(),  "--steps", "2",  "-s",           "5",
                                    "-t",          "1",  "--precision", "fp32",    "-o", path("out.png")};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  std::filesystem::path folder_;
};

/// One line on standard error, "sfumato: [module.op] ...", with `part` in it, and nothing else anywhere.
inline void expect_failure(const Outcome& outcome, int code, const std::string& part) {
  EXPECT_EQ(outcome.code, code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::StartsWith("sfumato: ["));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
}

}  // namespace sfumato
