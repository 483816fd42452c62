#include "image/parameters.h"

#include <gmock/gmock.h>

#include <random>

namespace sfumato {
namespace {

const std::pair<std::string, std::string> kSteps{"Steps", "20"};

TEST(ParametersText, HasTheFormThatOthersRead) {
  const GenerationInfo info{"a red apple", "blurry, ugly", {kSteps, {"Sampler", "Euler a"}, {"Model", "a, b: \"c\""}}};
  EXPECT_EQ(format_parameters(info),
            "a red apple\nNegative prompt: blurry, ugly\nSteps: 20, Sampler: Euler a, Model: \"a, b: \\\"c\\\"\"");
  EXPECT_EQ(format_parameters({"a red apple", "", {kSteps, {"Seed", "4294967295"}}}),
            "a red apple\nSteps: 20, Seed: 4294967295");
}

TEST(ParametersText, ReadsWhatOthersWrite) {
  const GenerationInfo info = parse_parameters(
                                  "line one\nline two\nNegative prompt: bad\nhands\nSteps: 30, Sampler: DPM++ 2M "
                                  "Karras, CFG scale: 7, Lora hashes: \"a: 12, b: 34\", Version: v1.7.0")
                                  .value();
  EXPECT_EQ(info.prompt, "line one\nline two");
  EXPECT_EQ(info.negative, "bad\nhands");
  ASSERT_NE(info.find("Lora hashes"), nullptr);
  EXPECT_EQ(*info.find("Lora hashes"), "a: 12, b: 34");
  EXPECT_EQ(*info.find("Version"), "v1.7.0");
  EXPECT_EQ(info.find("Seed"), nullptr);
  EXPECT_EQ(parse_parameters("Negative prompt: x\nSteps: 1").value().negative, "x");
  EXPECT_EQ(parse_parameters("Steps: 1").value().prompt, "");
}

TEST(ParametersText, RefusesOtherTexts) {
  for (const char* text : {"", "a red apple", "Seed: 1", "{\"prompt\": 1}"})
    EXPECT_FALSE(parse_parameters(text)) << text;
}

// Any prompt, negative prompt and values come back, made of the pieces that could be mistaken for structure.
TEST(ParametersText, ParseIsTheInverseOfFormat) {
  const std::string pieces[] = {
      "a", ", ", ": ",  "\n",     "\"",   "\\", "Negative prompt: ",  "Steps: 20", " ", "\u00e9",
      "🍎", "\r", "\\n", "{1: 2}", "null", "\t", "\nNegative prompt: "};
  std::mt19937 random(7);
  const auto text = [&](size_t most) {
    std::string out;
    for (size_t n = random() % (most + 1); n > 0; --n) out += pieces[random() % std::size(pieces)];
    return out;
  };
  for (int i = 0; i < 20000; ++i) {
    GenerationInfo info{text(6), text(6), {kSteps}};
    for (size_t n = random() % 4; n > 0; --n) info.fields.emplace_back("Key " + std::to_string(n), text(5));
    const std::string formatted = format_parameters(info);
    const Result<GenerationInfo> again = parse_parameters(formatted);
    ASSERT_TRUE(again) << formatted;
    ASSERT_EQ(*again, info) << formatted;
  }
  // A negative prompt that reads like the JSON form of one, of any depth.
  std::string nested = "x\nNegative prompt: y";
  for (int depth = 0; depth < 4; ++depth) {
    const GenerationInfo info{"p", nested, {kSteps}};
    EXPECT_EQ(parse_parameters(format_parameters(info)).value(), info);
    std::string quoted = "\"";
    for (const char c : nested)
      quoted += c == '\n' ? "\\n" : c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    nested = quoted + "\"";
  }
}

}  // namespace
}  // namespace sfumato
