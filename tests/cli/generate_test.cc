// Pictures drawn through the command line, with tiny models of random weights.
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "image/image_io.h"
#include "tests/cli/cli_fixture.h"
#include "weights/safetensors.h"

namespace sfumato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class GenerateTest : public CliTest {
 protected:
  /// Draws and returns the picture; the test fails if the program does.
  Image draw(const std::vector<std::string>& words) const {
    const Outcome outcome = run(tiny(words));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return picture("out.png");
  }
  Image picture(const std::string& name) const {
    Result<Image> image = read_image(path(name));
    EXPECT_TRUE(image) << image.error().message;
    return image ? *std::move(image) : Image();
  }
  std::string parameters(const std::string& name) const {
    const Result<std::string> text = read_parameters(path(name));
    EXPECT_TRUE(text) << text.error().message;
    return text ? *text : "";
  }
  std::vector<Json> events(const Outcome& outcome, const std::string& kind) const {
    std::vector<Json> found;
    for (const std::string& line : split(outcome.out, '\n'))
      if (!line.empty())
        if (const Json event = Json::parse(line); event["event"] == kind) found.push_back(event);
    return found;
  }
};

TEST_F(GenerateTest, WritesAPictureWithItsParameters) {
  const Outcome outcome = run(tiny({"-n", "blurry", "--sampler", "DPM++ 2M Karras", "-W", "40"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("seed 5"));
  EXPECT_EQ(picture("out.png").width, 40);
  EXPECT_EQ(picture("out.png").height, 64);  // the model's own
  EXPECT_THAT(parameters("out.png"),
              ::testing::StartsWith("a red apple\nNegative prompt: blurry\nSteps: 2, Sampler: DPM++ 2M, "
                                    "Schedule type: Karras, CFG scale: 7.5, Seed: 5, Size: 40x64, Model hash: "));
  EXPECT_THAT(parameters("out.png"), HasSubstr("Model: sd1, Version: sfumato 0.1"));
}

TEST_F(GenerateTest, EveryWayToSayThePromptIsTheSame) {
  const std::string model = tiny_model(), out = path("out.png");
  const std::vector<std::string> rest = {"-m", model, "-t", "1", "--steps", "1", "-s", "3", "-o", out};
  std::vector<std::vector<std::string>> ways = {{"a cat"}, {"generate", "a cat"}, {"-p", "a cat"}, {"--prompt=a cat"}};
  for (std::vector<std::string>& way : ways) {
    way.insert(way.end(), rest.begin(), rest.end());
    ASSERT_EQ(run(way).code, 0);
    EXPECT_THAT(parameters("out.png"), ::testing::StartsWith("a cat\nSteps: 1,"));
  }
}

TEST_F(GenerateTest, PromptsAreTakenAsTheyAre) {
  for (const std::string prompt : {"[a, b]", "[]", "{}", "", " ", "-x", "--steps", "a=b", "%s %n", "it's \"quoted\"",
                                   "a\nb", "赤いりんご 🍎", "@file", "null"}) {
    const Outcome outcome =
        run({"--prompt=" + prompt, "-m", tiny_model(), "-t", "1", "--steps", "1", "-s", "3", "-o", path("out.png")});
    ASSERT_EQ(outcome.code, 0) << prompt << outcome.err;
    EXPECT_THAT(parameters("out.png"), ::testing::StartsWith(prompt + "\nSteps: 1,")) << prompt;
  }
  for (const std::string broken : {"\xc3", "a \xed\xa0\x80 b", "\xc0\xaf", "\xff\xfe"}) {  // not UTF-8
    const Outcome outcome =
        run({"-p", broken, "-m", tiny_model(), "-t", "1", "--steps", "1", "--json", "-o", path("out.png")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(events(outcome, "picture").size(), 1u);
  }
}

TEST_F(GenerateTest, LongPromptsSayWhatWasLeftOut) {
  std::string prompt;
  for (int i = 1; i <= 120; ++i) prompt += str(i, " ");
  const Outcome outcome = run({prompt, "-m", tiny_model(), "-t", "1", "--steps", "1", "-o", path("out.png")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("1 1 9 1 2 0\""));
}

TEST_F(GenerateTest, SeveralPicturesHaveNamesAndSeedsOfTheirOwn) {
  const Outcome outcome = run(tiny({"-b", "3", "-s", "37", "--json", "-p", "a blue bird"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const std::vector<Json> pictures = events(outcome, "picture");
  ASSERT_EQ(pictures.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pictures[i]["seed"], 37 + i);
    EXPECT_EQ(pictures[i]["prompt"], i < 3 ? "a red apple" : "a blue bird");
    EXPECT_EQ(pictures[i]["file"], path(str("out-", i + 1, ".png")));
    EXPECT_THAT(parameters(str("out-", i + 1, ".png")), HasSubstr(str("Seed: ", 37 + i, ",")));
  }
  EXPECT_EQ(events(outcome, "start").at(0)["seed"], 37);
  EXPECT_FALSE(events(outcome, "progress").empty());
  EXPECT_EQ(run(tiny({"-b", "2", "-o", path("n%03d.jpg")})).code, 0);
  EXPECT_TRUE(exists("n001.jpg") && exists("n002.jpg"));
}

TEST_F(GenerateTest, APictureOfABatchIsTheSingleOneBitForBit) {
  ASSERT_EQ(run(tiny({"-b", "3", "--sampler", "Euler a", "--batch-size", "2", "-o", path("b%d.png")})).code, 0);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(draw({"-s", str(5 + i), "--sampler", "Euler a"}).pixels, picture(str("b", i + 1, ".png")).pixels) << i;
}

TEST_F(GenerateTest, PromptsFromAFile) {
  std::ofstream(path("prompts.txt")) << "a cat\r\n\n  a dog  \n";
  const Outcome outcome = run({"--prompts-file", path("prompts.txt"), "-m", tiny_model(), "-t", "1", "--steps", "1",
                               "--json", "-o", path("p%d.webp")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(parameters("p1.webp"), ::testing::StartsWith("a cat\n"));
  EXPECT_THAT(parameters("p2.webp"), ::testing::StartsWith("a dog\n"));
  std::ofstream(path("empty.txt")) << "\n \n";
  expect_failure(run({"--prompts-file", path("empty.txt")}), 3, "no prompt");
  expect_failure(run({"--prompts-file", path("none.txt")}), 3, "none.txt");
}

TEST_F(GenerateTest, SeedsAreTakenExactly) {
  for (const char* seed : {"0", "65536", "2147483648", "4294967295"}) {
    draw({"-s", seed, "--steps", "1"});
    EXPECT_THAT(parameters("out.png"), HasSubstr(str("Seed: ", seed, ",")));
  }
  const Outcome first = run(tiny({"-s", "-1", "--json"})), second = run(tiny({"--seed=-1", "--json"}));
  EXPECT_NE(events(first, "start").at(0)["seed"], events(second, "start").at(0)["seed"]);
}

TEST_F(GenerateTest, NoGuidanceIsTheConditionalHalfAlone) {
  const Image one = draw({"--cfg-scale", "1"});
  for (const char* scale : {"0.5", "0", "-1"}) EXPECT_EQ(draw({"--cfg-scale", scale}).pixels, one.pixels) << scale;
  EXPECT_NE(draw({}).pixels, one.pixels);
}

TEST_F(GenerateTest, OptionsThatNameAScheduleWinOverASuffix) {
  draw({"--scheduler", "exponential", "--sampler", "DPM++ 2M Karras"});
  EXPECT_THAT(parameters("out.png"), HasSubstr("Schedule type: Exponential"));
}

TEST_F(GenerateTest, OddSizesComeOutAsAsked) {
  for (const auto& [width, height] : {std::pair{72, 40}, {8, 104}, {24, 24}}) {
    const Image image = draw({"--size", str(width, "x", height)});
    EXPECT_EQ(image.width, width);
    EXPECT_EQ(image.height, height);
  }
}

TEST_F(GenerateTest, InitImagesOfEveryKindGiveTheSame) {
  const auto from = [&](const std::string& name) {
    return draw({"-i", source_file("tests/golden/image/" + name), "--strength", "0.5"}).pixels;
  };
  const auto colour = from("rgb.png"), gray = from("gray.png");
  for (const char* name : {"rgba.png", "lossless.webp", "lossless_alpha.webp"}) EXPECT_EQ(from(name), colour) << name;
  for (const char* name : {"gray_alpha.png", "gray16.png", "palette.png"}) EXPECT_EQ(from(name), gray) << name;
  EXPECT_NE(colour, gray);
  for (const char* name : {"one.png", "bilevel.png", "orientation6.jpg"}) EXPECT_FALSE(from(name).empty()) << name;
}

TEST_F(GenerateTest, MaskOfBlackKeepsWhatMaskOfWhiteRepaints) {
  const auto masked = [&](int level) {
    Image mask(64, 64, 1);
    std::fill(mask.pixels.begin(), mask.pixels.end(), static_cast<uint8_t>(level));
    EXPECT_TRUE(write_image(path("mask.png"), mask, ""));
    return draw({"-i", source_file("tests/golden/image/rgb.png"), "--mask", path("mask.png")}).pixels;
  };
  EXPECT_EQ(masked(255), draw({"-i", source_file("tests/golden/image/rgb.png")}).pixels);
  EXPECT_NE(masked(255), masked(0));
}

TEST_F(GenerateTest, SdxlTakesItsSizes) {
  const std::vector<std::string> xl = {"-m", tiny_model("sdxl")};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), xl.begin(), xl.end());
    return draw(words).pixels;
  };
  EXPECT_NE(with({"--original-size", "256x256"}), with({}));
  EXPECT_NE(with({"-n", ""}), with({}));  // an empty negative prompt is encoded, an absent one is zeros
}

TEST_F(GenerateTest, QuietIsQuiet) {
  const Outcome outcome = run(tiny({"--quiet"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err + outcome.out, "");
  EXPECT_TRUE(exists("out.png"));
}

TEST_F(GenerateTest, LatentsAreWritten) {
  draw({"--latents-out", path("l.safetensors"), "--size", "64x32"});
  const auto file = SafetensorsFile::open(path("l.safetensors")).value();
  EXPECT_THAT(file->names(), ElementsAre("latents.0"));
  EXPECT_EQ(file->find("latents.0")->shape, (Shape{4, 4, 8}));
}

TEST_F(GenerateTest, InterruptStopsWithinAStepAndWritesNothing) {
  RunningProgram program(folder_, tiny({"--steps", "1000", "--json", "--size", "256x256"}));
  program.wait_for_output("\"step\":2,");
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_LT(events(outcome, "progress").back()["step"], 1000);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_THAT(entry.path().filename().string(), ::testing::StartsWith("std"));
}

}  // namespace
}  // namespace sfumato
