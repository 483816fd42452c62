// The embedded model draws what diffusers draws from its folder (tools/golden/emoji.py).
#include <cstdlib>

#include "image/image_io.h"
#include "pipeline/pipeline.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

struct Drawn {
  uint32_t seed;
  const char* prompt;
};
class EmojiGolden : public testing::TestWithParam<Drawn> {};

TEST_P(EmojiGolden, IsWhatDiffusersDraws) {
  const std::unique_ptr<Pipeline> pipeline =
      Pipeline::load({SFUMATO_SOURCE_DIR "/models/emoji", 0, Precision::kF32}).value();
  Request request;
  request.prompts = {GetParam().prompt};
  request.seed = GetParam().seed;
  const std::vector<Picture> pictures = pipeline->generate(request).value();
  const Image expected = read_image(golden_path("emoji/" + std::to_string(request.seed) + ".png")).value();
  const Image& image = pictures.at(0).image;
  ASSERT_EQ(image.pixels.size(), expected.pixels.size());
  size_t far = 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) far += std::abs(image.pixels[i] - expected.pixels[i]) > 1;
  EXPECT_LE(far, image.pixels.size() / 1000) << "of " << image.pixels.size();
}

INSTANTIATE_TEST_SUITE_P(Prompts, EmojiGolden,
                         testing::Values(Drawn{42, "red apple"}, Drawn{7, "cat face"}, Drawn{3, "rocket"}),
                         [](const auto& info) { return "Seed" + std::to_string(info.param.seed); });

}  // namespace
}  // namespace sfumato
