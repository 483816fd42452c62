#include "image/convert.h"

#include <gmock/gmock.h>

#include <limits>

#include "image/image_io.h"
#include "image/resize.h"
#include "image/test_pictures.h"

namespace sfumato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ToRgb, RepeatsGreyAndDropsAlpha) {
  Image gray(2, 1, 1), rgba(1, 1, 4);
  gray.pixels = {7, 200};
  rgba.pixels = {1, 2, 3, 0};
  EXPECT_THAT(to_rgb(gray).pixels, ElementsAre(7, 7, 7, 200, 200, 200));
  EXPECT_THAT(to_rgb(rgba).pixels, ElementsAre(1, 2, 3));
}

TEST(TensorToImage, RoundsAsDiffusers) {
  // (x/2 + 0.5) * 255: -1 -> 0, 1 -> 255, 0 -> 127.5, which goes to the even 128; 1 - 2/255 -> 254; outside is clamped.
  const Tensor tensor = Tensor::from({1, 2, 1, 3}, std::vector<float>{-1, 1, 0, 1 - 2 / 255.0f, -3, 3});
  const Image image = tensor_to_image(tensor).value();
  EXPECT_EQ(image.width, 1);
  EXPECT_EQ(image.height, 2);
  EXPECT_THAT(image.pixels, ElementsAre(0, 255, 128, 254, 0, 255));
}

TEST(TensorToImage, EveryLevelComesBack) {
  Image levels(16, 16, 3);
  for (size_t i = 0; i < levels.pixels.size(); ++i) levels.pixels[i] = static_cast<uint8_t>(i / 3);
  const Tensor tensor = image_to_tensor(levels);
  EXPECT_EQ(tensor.shape(), (Shape{1, 16, 16, 3}));
  EXPECT_EQ(tensor.f32()[0], -1.0f);
  EXPECT_EQ(tensor.f32()[255 * 3], 1.0f);
  EXPECT_EQ(tensor_to_image(tensor).value().pixels, levels.pixels);
}

TEST(TensorToImage, CountsWhatIsNotFinite) {
  Tensor tensor = Tensor::zeros({1, 2, 2, 3});
  tensor.f32()[1] = std::numeric_limits<float>::quiet_NaN();
  tensor.f32()[5] = std::numeric_limits<float>::infinity();
  const Result<Image> image = tensor_to_image(tensor);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind, ErrorKind::kRuntime);
  EXPECT_THAT(image.error().message, HasSubstr("2 of 12"));
  EXPECT_THAT(image.error().message, HasSubstr("NaN"));
}

TEST(ResizeLanczos, GivesPilsLevels) {
  const Image large = pattern(61, 47);
  for (const auto& [width, height] : {std::pair{61, 20}, {24, 47}, {16, 16}, {100, 90}, {7, 131}}) {
    const std::string name = "lanczos_" + std::to_string(width) + "x" + std::to_string(height) + ".png";
    const Image resized = resize_lanczos(large, width, height);
    EXPECT_EQ(resized.width, width);
    EXPECT_EQ(resized.height, height);
    EXPECT_EQ(resized.pixels, read_image(golden_image(name)).value().pixels) << name;
  }
  EXPECT_EQ(resize_lanczos(large, 61, 47).pixels, large.pixels);
}

TEST(ResizeLanczos, OnePixelAndOneChannel) {
  Image one(1, 1, 1);
  one.pixels = {93};
  const Image large = resize_lanczos(one, 5, 3);
  EXPECT_THAT(large.pixels, ::testing::Each(93));
  EXPECT_EQ(resize_lanczos(large, 1, 1).pixels, one.pixels);
}

}  // namespace
}  // namespace sfumato
