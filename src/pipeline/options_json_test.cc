#include "pipeline/options_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sfumato {
namespace {

using testing::HasSubstr;

Result<RunOptions> read(const char* text) {
  RunOptions run;
  const nlohmann::json object = TRY(parse_json(text));
  for (const auto& [field, value] : object.items()) {
    const Option* option = find_option(field);
    if (!option) return usage_error("unknown " + field);
    TRY(set_option(run, *option, field, value));
  }
  return run;
}

TEST(OptionsJson, NamesWithEitherDash) {
  EXPECT_EQ(find_option("cfg_scale"), find_option("guidance-scale"));
  EXPECT_EQ(find_option("negative_prompt"), find_option("neg-prompt"));
  ASSERT_NE(find_option("num_inference_steps"), nullptr);
  EXPECT_EQ(find_option("num_inference_steps")->names[0], "--steps");
  EXPECT_EQ(find_option("m"), nullptr);  // short names are for typing
  EXPECT_EQ(find_option(""), nullptr);
}

TEST(OptionsJson, SetsAsTheCommandLineDoes) {
  const auto run = read(R"({"steps": 7, "cfg_scale": 2.5, "size": "64x128", "sampler": "Euler a", "seed": 4294967295,
                            "negative_prompt": "", "clip_skip": null, "quiet": false})");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->request.steps, 7);
  EXPECT_EQ(run->request.guidance, 2.5f);
  EXPECT_EQ(run->request.size, (Size{64, 128}));
  EXPECT_EQ(run->request.seed, 4294967295u);
  EXPECT_EQ(run->request.negative_prompt, "");
  EXPECT_FALSE(run->quiet);
}

TEST(OptionsJson, WholeNumbersMayHaveAPoint) {
  EXPECT_EQ(read(R"({"steps": 20.0})")->request.steps, 20);
  EXPECT_THAT(read(R"({"steps": 20.5})").error().message, HasSubstr("--steps expected"));
}

TEST(OptionsJson, WrongTypesNameTheField) {
  for (const char* text : {R"({"steps": "20"})", R"({"steps": true})", R"({"steps": []})", R"({"steps": {}})"})
    EXPECT_THAT(read(text).error().message, HasSubstr("steps expected a number")) << text;
  EXPECT_THAT(read(R"({"sampler": 3})").error().message, HasSubstr("sampler expected a text, got 3"));
  EXPECT_THAT(read(R"({"quiet": 1})").error().message, HasSubstr("expected true or false"));
  for (const char* text : {R"({"steps": 0})", R"({"steps": -1})", R"({"steps": 1e300})", R"({"seed": 4294967296})"})
    EXPECT_EQ(read(text).error().kind, ErrorKind::kUsage) << text;
}

TEST(OptionsJson, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "{\"a\":1} x", "{\"steps\": 1e999}", "{\"steps\": NaN}", "{\"a\":\"\xff\"}"})
    EXPECT_EQ(parse_json(text).error().kind, ErrorKind::kBadInput) << text;
  EXPECT_THAT(parse_json(R"({"seed": 1, "seed": 2})").error().message, HasSubstr("\"seed\" is there twice"));
  EXPECT_TRUE(parse_json(R"([{"seed": 1}, {"seed": 2}])"));
  EXPECT_THAT(parse_json(std::string(100000, '[')).error().message, HasSubstr("levels"));
  EXPECT_TRUE(parse_json(R"({"prompt": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ \" [[["})"));
}

}  // namespace
}  // namespace sfumato
