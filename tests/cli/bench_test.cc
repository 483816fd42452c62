// `sfumato bench` with tiny models: what it prints, not how fast they are.
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "tests/cli/cli_fixture.h"

namespace sfumato {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class BenchTest : public CliTest {
 protected:
  Outcome bench(std::vector<std::string> more, const Environment& environment = {}) const {
    std::vector<std::string> words = {"bench", "-m", tiny_model(), "--size", "64x64", "-t", "1", "-r", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, environment);
  }
};

TEST_F(BenchTest, RunsEveryCombination) {
  const Outcome outcome = bench({"--component", "text,unet,vae-decode,vae-encode,pipeline", "--batch", "1,2",
                                 "--precision", "fp32", "--steps", "1", "-o", "json"},
                                {{"SFUMATO_MAX_ISA", "avx2"}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 10u);
  for (const Json& row : rows) {
    EXPECT_EQ(row["model"], "sd1");
    EXPECT_EQ(row["size"], "64x64");
    EXPECT_EQ(row["threads"], 1);
    EXPECT_EQ(row["precision"], "fp32");
    EXPECT_EQ(row["backend"], "cpu");
    EXPECT_LE(row["seconds_min"], row["seconds_median"]);
    EXPECT_LE(row["seconds_median"], row["seconds_max"]);
    EXPECT_GT(row["gflops_effective"], 0);
    EXPECT_GT(row["rss_peak_bytes"], 1 << 20);
    EXPECT_FALSE(row["commit"].get<std::string>().empty());
  }
  EXPECT_EQ(rows[2]["component"], "unet");
  EXPECT_EQ(rows[3]["batch"], 2);
}

TEST_F(BenchTest, TablesForPeopleAndSpreadsheets) {
  const Outcome markdown = bench({"--component", "unet"});
  ASSERT_EQ(markdown.code, 0) << markdown.err;
  EXPECT_THAT(markdown.out, HasSubstr("| component | model |"));
  EXPECT_THAT(markdown.out, HasSubstr("\n| unet | sd1 | 64x64 | 1 | 1 |"));
  const std::vector<std::string> lines = split(bench({"--component", "unet", "-o", "csv"}).out, '\n');
  ASSERT_EQ(lines.size(), 3u);  // the last is empty
  EXPECT_THAT(lines[0], ::testing::StartsWith("component,model,size,batch,threads,precision,isa,"));
  EXPECT_THAT(lines[1], ::testing::StartsWith("\"unet\",\"sd1\",\"64x64\",1,1,"));
}

TEST_F(BenchTest, MistakesAreNamed) {
  expect_failure(bench({"--component", "unet,vea"}), 2, "got \"vea\"");
  expect_failure(bench({"--batch", "0"}), 2, "--batch expected a number");
  expect_failure(bench({"--precision", "fp13"}), 2, "--precision expected");
  expect_failure(run({"bench", "-m", tiny_model(), "--size", "65x64"}), 2, "width expected a multiple of 8");
  expect_failure(bench({"--synthetic-weights", "sd15"}), 2, "got both");
  expect_failure(run({"bench", "--synthetic-weights", "sd9"}), 2, "expected synthetic weights of sd15");
}

}  // namespace
}  // namespace sfumato
