// `sfumato info`: values that other programs give too.
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "tests/cli/cli_fixture.h"

namespace sfumato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class InfoTest : public CliTest {
 protected:
  std::string text(const std::vector<std::string>& words) const {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  Json json(std::vector<std::string> words, const Environment& more = {}) const {
    words.push_back("--json");
    const Outcome outcome = run(words, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
};

TEST_F(InfoTest, Machine) {
  const Json machine = json({"info"});
  EXPECT_EQ(machine["known_isas"], (Json{"scalar", "avx2", "avx512", "avx512_bf16", "avx512_fp16", "amx"}));
  EXPECT_GE(machine["threads"], 1);
  EXPECT_EQ(json({"info"}, {{"SFUMATO_MAX_ISA", "scalar"}})["isa"], "scalar");
  EXPECT_THAT(text({"info"}), HasSubstr(machine["cpu"].get<std::string>()));
}

TEST_F(InfoTest, Tokens) {
  EXPECT_EQ(text({"info", "tokens", "a photo of a fox"}), "49406 320 1125 539 320 3240 49407\n");
  EXPECT_EQ(text({"info", "tokens", "Covid-19's long-term impact?"}),
            "49406 622 9284 268 272 280 568 1538 268 4780 3844 286 49407\n");
  EXPECT_EQ(text({"info", "tokens", ""}), "49406 49407\n");
  EXPECT_EQ(text({"info", "tokens", "🇯🇵", "-m", tiny_model("sdxl")}), "49406 26527 49407\n49406 26527 49407\n");
  const Json xl = json({"info", "tokens", "cat", "-m", tiny_model("sdxl")});
  EXPECT_EQ(xl["encoders"][0]["pad_id"], 49407);
  EXPECT_EQ(xl["encoders"][1]["pad_id"], 0);
  std::string numbers;
  for (int i = 1; i <= 120; ++i) numbers += str(i, " ");
  const Outcome cut = run({"info", "tokens", numbers});
  const std::vector<std::string> ids = split(cut.out, ' ');
  EXPECT_EQ(ids.size(), 77u);
  EXPECT_EQ(ids.back(), "49407\n");
  EXPECT_THAT(cut.err, HasSubstr("1 1 9 1 2 0\""));
}

TEST_F(InfoTest, Schedule) {
  EXPECT_EQ(text({"info", "schedule", "--steps", "4", "--sampler", "Euler", "--scheduler", "trailing"}),
            "999 14.614647\n749 4.081731\n499 1.612887\n249 0.6932054\n");
  const Json leading = json({"info", "schedule", "--steps", "20", "--sampler", "Euler", "--scheduler", "leading"});
  EXPECT_EQ(leading["timesteps"].size(), 20u);
  EXPECT_EQ(leading["timesteps"][0], 951);
  EXPECT_EQ(leading["timesteps"][19], 1);
  EXPECT_NEAR(leading["sigmas"][0].get<double>(), 11.0283, 1e-4);
  EXPECT_NEAR(leading["init_noise_sigma"].get<double>(), 11.0736, 1e-4);
  EXPECT_EQ(leading["sigmas"].size(), 21u);
  EXPECT_EQ(leading["sigmas"][20], 0);
  const Json karras = json({"info", "schedule", "--steps", "10", "--sampler", "Euler Karras"});
  EXPECT_NEAR(karras["sigmas"][1].get<double>(), 9.10293, 1e-4);
  EXPECT_EQ(karras["scheduler"], "Karras");
  EXPECT_EQ(json({"info", "schedule", "-m", tiny_model("sdxl")})["sampler"], "Euler");
}

TEST_F(InfoTest, Noise) {
  const Json values = json({"info", "noise", "--seed", "42", "--shape", "4x64x64"})["values"];
  ASSERT_EQ(values.size(), 16384u);
  const double expected[] = {1.9269, 1.4873, 0.9007, -2.1055, 0.6784};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_NEAR(values[i].get<double>(), expected[i], 5e-5);
  EXPECT_NEAR(values[16383].get<double>(), -0.2934, 5e-5);
  const std::vector<std::string> few = split(text({"info", "noise", "-s", "0", "--shape", "8"}), '\n');
  ASSERT_EQ(few.size(), 9u);
  EXPECT_NEAR(std::stod(few[0]), 1.5410, 5e-5);
  EXPECT_NEAR(std::stod(few[7]), 0.8380, 5e-5);
  EXPECT_NE(text({"info", "noise", "--rng", "philox", "--shape", "16"}), text({"info", "noise", "--shape", "16"}));
}

TEST_F(InfoTest, Picture) {
  const std::string name = path("a, \"b\".png");
  ASSERT_EQ(run(tiny({"-n", "x: y, z", "-o", name})).code, 0);
  EXPECT_THAT(text({"info", name}), StartsWith("a red apple\nNegative prompt: x: y, z\nSteps: 2, "));
  const Json info = json({"info", name});
  EXPECT_EQ(info["prompt"], "a red apple");
  EXPECT_EQ(info["negative_prompt"], "x: y, z");
  EXPECT_EQ(info["fields"]["Seed"], "5");
  EXPECT_EQ(info["fields"]["Size"], "64x64");
  EXPECT_THAT(text({"info", source_file("tests/golden/image/rgba.png")}), StartsWith("赤いりんご 🍎\n"));  // by PIL
}

TEST_F(InfoTest, Model) {
  const Json xl = json({"info", tiny_model("sdxl")});
  EXPECT_EQ(xl["family"], "SDXL");
  EXPECT_EQ(xl["hash"].get<std::string>().size(), 10u);
  ASSERT_EQ(xl["components"].size(), 4u);
  EXPECT_EQ(xl["components"][1]["class"], "CLIPTextModelWithProjection");
  EXPECT_EQ(xl["components"][2]["dtype"], "F32");
  for (const Json& part : xl["components"])
    EXPECT_THAT(text({"info", tiny_model("sdxl")}), HasSubstr(part["class"].get<std::string>()));
  EXPECT_EQ(json({"info", tiny_model("sd1")})["family"], "SD1");
}

TEST_F(InfoTest, HelpOfEverySubject) {
  EXPECT_THAT(text({"info", "--help"}), HasSubstr("info schedule"));
  EXPECT_THAT(text({"info", "schedule", "--help"}), HasSubstr("--sampler"));
  EXPECT_THAT(text({"info", "noise", "--help"}), HasSubstr("--shape"));
  EXPECT_THAT(text({"info", "tokens", "--help"}), HasSubstr("--model"));
}

}  // namespace
}  // namespace sfumato
