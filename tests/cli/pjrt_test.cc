// `sfumato compile` and `sfumato bench scaling`, with the plugins that tools/install_pjrt.py fetched.
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class PjrtCliTest : public CliTest {
 protected:
  std::string plugin(const char* name) const {
    return std::filesystem::path(golden_path("../../third_party/pjrt")) / name;
  }
  Outcome compile(const std::string& library, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"compile", "--plugin", plugin(library.c_str()), "--size", "64x64"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

#define NEED_PLUGIN(name) \
  if (!std::filesystem::exists(plugin(name))) GTEST_SKIP() << "no " << name << ": tools/install_pjrt.py --tpu"

TEST_F(PjrtCliTest, CompilesForATpuThatIsNotThere) {
  NEED_PLUGIN("libtpu.so");
  const Outcome outcome = compile(
      "libtpu.so", {"--topology", "v5e:2x2", "--component", "text,unet", tiny_model(), "--batch", "1,2", "-o", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["device_kind"], "TPU v5 lite");
  EXPECT_EQ(report["devices"], 4);
  EXPECT_EQ(report["precision"], "bf16");
  const Json& programs = report["programs"];
  ASSERT_EQ(programs.size(), 5u);  // text encoder, and a U-Net in two parts for each batch
  for (const Json& program : programs) {
    EXPECT_GT(program["flops"], 0) << program;
    EXPECT_GT(program["bytes_accessed"], 0) << program;
    EXPECT_GT(program["argument_bytes"], 0) << program;
  }
  EXPECT_EQ(programs[2]["batch"], 1);
  EXPECT_EQ(programs[2]["runs"], 20);
  EXPECT_NEAR(programs[4]["flops"].get<double>() / programs[2]["flops"].get<double>(), 2, 0.1);
  ASSERT_EQ(report["totals"].size(), 2u);
  for (const Json& total : report["totals"]) {
    EXPECT_EQ(total["fits"], true);
    EXPECT_GT(total["bound_seconds_per_image"], 0);
  }
}

TEST_F(PjrtCliTest, CompileMistakesAreNamed) {
  NEED_PLUGIN("libpjrt_cpu.so");
  expect_failure(compile("libpjrt_cpu.so", {"--topology", "v5e:2x2", tiny_model()}), 1,
                 "PJRT_TopologyDescription_Create: ");
  expect_failure(compile("libnone.so", {"--topology", "v5e:2x2", tiny_model()}), 3, "give its path with --plugin");
  expect_failure(compile("libpjrt_cpu.so", {tiny_model()}), 2, "--topology");
  expect_failure(compile("libpjrt_cpu.so", {"--topology", "v5e:2x2", "--component", "vea", tiny_model()}), 2, "vea");
}

TEST_F(PjrtCliTest, ScalingHasARowForEachNumberOfDevices) {
  NEED_PLUGIN("libpjrt_cpu.so");
  const Outcome outcome = run({"bench", "scaling", "--plugin", plugin("libpjrt_cpu.so"), "-m", tiny_model(), "--size",
                               "64x64", "--steps", "1", "--devices", "1,2", "-r", "1", "--price", "2", "-o", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["efficiency"], 1);
  for (const Json& row : rows) {
    EXPECT_EQ(row["images"], row["devices"]);
    const double per_minute = 60 * row["images"].get<double>() / row["seconds_median"].get<double>();
    EXPECT_NEAR(row["images_per_minute"], per_minute, 1e-6 * per_minute);
    EXPECT_NEAR(row["images_per_minute_per_dollar_hour"], per_minute / 2, 1e-6 * per_minute);  // devices of one CPU
    EXPECT_GT(row["host_fraction"], 0);
    EXPECT_LT(row["host_fraction"], 1);
  }
}

}  // namespace
}  // namespace sfumato
