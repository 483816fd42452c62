// What people mistype: exit code 2, one line, nothing written.
#include "pipeline/options.h"
#include "tests/cli/cli_fixture.h"

namespace sfumato {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Mistake {
  Words words;
  std::string part;  ///< of the message
};

class UsageTest : public CliTest {
 protected:
  void expect_usage_errors(const std::vector<Mistake>& mistakes) const {
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(::testing::PrintToString(mistake.words));
      expect_failure(run(tiny(mistake.words)), 2, mistake.part);
      EXPECT_FALSE(exists("out.png"));
    }
  }
};

TEST_F(UsageTest, UnknownOptionsNameTheClosest) {
  expect_usage_errors({{{"--step", "4"}, "--steps"},
                       {{"--sample", "Euler"}, "--sampler"},
                       {{"--negativ-prompt", "x"}, "--negative-prompt"},
                       {{"--cfgscale=7"}, "--cfg-scale"},
                       {{"--xyzzyx"}, "--help"},
                       {{"-Z"}, "-Z"},
                       {{"--steps"}, "--steps"},
                       {{"another prompt"}, "another prompt"}});
}

TEST_F(UsageTest, NoPrompt) {
  expect_failure(run({}), 2, "expected a prompt");
  expect_failure(run({"generate"}), 2, "expected a prompt");
  expect_failure(run({"-m", tiny_model()}), 2, "expected a prompt");
}

TEST_F(UsageTest, NumbersAreWholeAndWithinTheirRange) {
  for (const char* option :
       {"--steps", "--width", "--height", "--batch-count", "--batch-size", "--threads", "--clip-skip"})
    for (const char* value : {"0", "-1", "1.5", "two", "", "1e3", "99999999999999999999", " 4", "0x10"})
      expect_usage_errors({{{std::string(option) + "=" + value}, option}});
  for (const char* option : {"--cfg-scale", "--guidance-rescale", "--strength"})
    for (const char* value : {"nan", "inf", "-inf", "7,5", "", "1e9"})
      expect_usage_errors({{{std::string(option) + "=" + value}, option}});
  expect_usage_errors({{{"--steps", "1001"}, "1000"},
                       {{"--strength", "1.01"}, "--strength"},
                       {{"--strength", "-0.1"}, "--strength"},
                       {{"--guidance-rescale", "-0.5"}, "--guidance-rescale"},
                       {{"--batch-count", "1001"}, "1000"}});
}

TEST_F(UsageTest, SeedsAreExactOrRefused) {
  for (const char* seed :
       {"4294967296", "9007199254740993", "9223372036854775807", "18446744073709551615", "-2", "1.0", "0x1"})
    expect_usage_errors({{{"--seed", seed}, "4294967295"}});
  expect_usage_errors({{{"-s", "4294967295", "-b", "2"}, "4294967295"}});
}

TEST_F(UsageTest, SizesNameTheNearestGoodOnes) {
  expect_usage_errors({{{"-W", "77"}, "72 or 80"},
                       {{"--size", "64x100"}, "96 or 104"},
                       {{"-H", "7"}, "8"},
                       {{"--size", "4100x64"}, "4096"},
                       {{"--size", "64"}, "512x768"},
                       {{"--size", "0x64"}, "512x768"},
                       {{"--size", "64x-64"}, "512x768"},
                       {{"--size", "1000000000000x64"}, "512x768"},
                       {{"--size", "64x64x64"}, "512x768"}});
}

TEST_F(UsageTest, NamesListTheKnownOnes) {
  expect_usage_errors({{{"--sampler", "Euler b"}, "DPM++ 2M"},
                       {{"--scheduler", "karas"}, "Karras"},
                       {{"--prediction", "x0"}, "epsilon"},
                       {{"--rng", "cuda"}, "philox"},
                       {{"--precision", "int3"}, "bf16"}});
}

TEST_F(UsageTest, OutputIsCheckedBeforeTheWork) {
  std::filesystem::create_directory(folder_ / "folder.png");
  for (const auto& [output, part] : std::vector<std::pair<std::string, std::string>>{{path("a.bmp"), ".png"},
                                                                                     {path("a"), ".png"},
                                                                                     {path("nowhere/a.png"), "nowhere"},
                                                                                     {path("folder.png"), "folder"},
                                                                                     {path("%s.png"), "%03d"},
                                                                                     {path("%d%d.png"), "%03d"},
                                                                                     {path("%9999d.png"), "%03d"},
                                                                                     {path("a%.png"), "%03d"}})
    // The model is missing too: the output comes first.
    expect_failure(run({"x", "-m", path("no-model"), "-o", output}), 2, part);
  expect_failure(run({"x", "-m", path("no-model"), "--latents-out", path("nowhere/l.safetensors")}), 2, "nowhere");
}

TEST_F(UsageTest, CombinationsThatMakeNoSense) {
  const std::string picture = source_file("tests/golden/image/rgb.png");
  expect_usage_errors({{{"--mask", picture}, "init image"},
                       {{"--original-size", "64x64"}, "SDXL"},
                       {{"--crop-top", "3"}, "SDXL"},
                       {{"-i", picture, "--strength", "0"}, "strength"},
                       {{"-i", picture, "--strength", "0.49"}, "strength"}});  // 2 steps x 0.49: none
}

TEST_F(UsageTest, InstructionSetOfTheEnvironment) {
  expect_failure(run({"info"}, {{"SFUMATO_MAX_ISA", "avx3"}}), 2, "avx512_fp16");
}

TEST_F(UsageTest, InfoHasErrorsOfItsOwn) {
  expect_failure(run({"info", "--step", "4"}), 2, "--step");
  expect_failure(run({"info", "schedule", "--step", "4"}), 2, "--steps");
  expect_failure(run({"info", "tokens"}), 2, "text");
  expect_failure(run({"info", "noise", "--shape", "4x0"}), 2, "--shape");
  expect_failure(run({"info", "noise", "--shape", "1000000x1000000"}), 2, "--shape");
  expect_failure(run({"info", "noise", "--shape", ""}), 2, "--shape");
}

TEST_F(UsageTest, HelpNamesEveryOptionOnce) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const Option& option : all_options()) {
    for (const std::string& name : option.names) {
      size_t count = 0;
      for (size_t at = help.out.find(name); at != std::string::npos; at = help.out.find(name, at + 1)) {
        const std::string around = {at == 0 ? ' ' : help.out[at - 1], help.out[at + name.size()]};
        count += std::string(" ,").find(around[0]) != std::string::npos &&
                 std::string(" ,\n").find(around[1]) != std::string::npos;
      }
      EXPECT_EQ(count, 1u) << name;
    }
    EXPECT_THAT(help.out, HasSubstr(option.help));
  }
}

TEST_F(UsageTest, Version) {
  EXPECT_EQ(run({"--version"}).out, "sfumato 0.1.0\n");
}

}  // namespace
}  // namespace sfumato
