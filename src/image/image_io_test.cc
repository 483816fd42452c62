#include "image/image_io.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "base/mapped_file.h"
#include "image/convert.h"
#include "image/test_pictures.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kText = "a café\nSteps: 20, Sampler: Euler a, Seed: 7";
constexpr const char* kWideText = "赤いりんご 🍎\nNegative prompt: blurry\nSteps: 20, Sampler: Euler a, Seed: 7";

Image read(const std::string& name) {
  return read_image(golden_image(name)).value();
}
std::string bytes_of(const std::string& path) {
  const auto file = MappedFile::open(path).value();
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}
Result<Image> decode(const std::string& bytes, const ReadLimits& limits = {}) {
  return decode_image(std::as_bytes(std::span(bytes)), limits);
}
int worst_difference(const Image& a, const Image& b) {
  int worst = a.pixels.size() == b.pixels.size() ? 0 : 256;
  for (size_t i = 0; worst < 256 && i < a.pixels.size(); ++i)
    worst = std::max(worst, std::abs(a.pixels[i] - b.pixels[i]));
  return worst;
}

TEST(ReadImage, LosslessFormatsGiveTheSamePixels) {
  const Image expected = pattern();
  for (const char* name : {"rgb.png", "rgba.png", "lossless.webp", "lossless_alpha.webp"})
    EXPECT_EQ(to_rgb(read(name)).pixels, expected.pixels) << name;
  EXPECT_EQ(read("rgb.png").channels, 3);
  EXPECT_EQ(read("rgba.png").channels, 4);
  EXPECT_EQ(read("rgba.png").pixels[3], 128);
}

TEST(ReadImage, EveryKindOfGrey) {
  const Image gray = read("gray.png");
  EXPECT_EQ(gray.channels, 1);
  EXPECT_EQ(gray.pixels, to_gray(pattern()).pixels);  // PIL's weights
  for (const char* name : {"gray16.png", "gray_alpha.png", "palette.png"})
    EXPECT_EQ(to_rgb(read(name)).pixels, to_rgb(gray).pixels) << name;
  EXPECT_LE(worst_difference(read("gray.jpg"), gray), 12);
  const Image bilevel = read("bilevel.png");
  for (size_t i = 0; i < gray.pixels.size(); ++i) EXPECT_EQ(bilevel.pixels[i], gray.pixels[i] > 127 ? 255 : 0);
}

TEST(ReadImage, OnePixel) {
  const Image one = read("one.png"), all = pattern();
  EXPECT_EQ(one.width, 1);
  EXPECT_EQ(one.height, 1);
  EXPECT_TRUE(std::equal(one.pixels.begin(), one.pixels.end(), all.at(3, 2)));
}

TEST(ReadImage, TurnsCameraPicturesUpright) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image image = read("orientation" + std::to_string(orientation) + ".jpg");
    ASSERT_EQ(image.width, 16) << orientation;
    ASSERT_EQ(image.height, 24) << orientation;
    for (int y = 0; y < 24; ++y)
      for (int x = 0; x < 16; ++x) {
        EXPECT_NEAR(image.at(x, y)[0], x / 8 * 200, 3) << orientation;
        EXPECT_NEAR(image.at(x, y)[1], y / 8 * 100, 3) << orientation;
      }
  }
}

TEST(ReadImage, RefusesWhatItCannotDo) {
  for (const auto& [name, why] : {std::pair{"animated.webp", "animation"}, {"cmyk.jpg", "CMYK"}}) {
    const Result<Image> image = read_image(golden_image(name));
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(image.error().message, HasSubstr(why));
    EXPECT_THAT(image.error().message, HasSubstr(name));
  }
  EXPECT_FALSE(read_image("nowhere.png"));
  for (const std::string& junk : {std::string(), std::string("GIF89a"), std::string(100, 'x')})
    EXPECT_FALSE(decode(junk));
}

TEST(ReadImage, LimitComesBeforeDecoding) {
  for (const char* name : {"rgb.png", "orientation1.jpg", "lossless.webp"}) {
    const std::string bytes = bytes_of(golden_image(name));
    const Result<Image> image = decode(bytes, {.max_pixels = 100});
    ASSERT_FALSE(image);
    EXPECT_THAT(image.error().message, HasSubstr("at most 100 pixels")) << name;
  }
  // A header of 60000 x 60000 with nothing behind it: refused for its size, not for what is missing.
  std::string huge = bytes_of(golden_image("one.png"));
  huge.replace(16, 8, std::string("\0\0\xea\x60\0\0\xea\x60", 8));
  huge.replace(29, 4, std::string("\x0f\xb0\xe2\x15", 4));  // CRC of that IHDR
  const Result<Image> image = decode(huge);
  ASSERT_FALSE(image);
  EXPECT_THAT(image.error().message, HasSubstr("60000x60000"));
}

TEST(ReadImage, EveryTruncationIsAnErrorAndNoFlippedByteCrashes) {
  for (const char* name : {"rgb.png", "gray_alpha.png", "palette.png", "orientation6.jpg", "lossless_alpha.webp"}) {
    const std::string whole = bytes_of(golden_image(name));
    for (size_t size = 0; size < whole.size() - 16; ++size) EXPECT_FALSE(decode(whole.substr(0, size))) << name << size;
    for (size_t at = 0; at < whole.size(); ++at)
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string broken = whole;
        broken[at] = static_cast<char>(broken[at] ^ flip);
        (void)decode(broken, {.max_pixels = 1 << 16});
        (void)parameters_of(std::as_bytes(std::span(broken)));
      }
  }
}

TEST(Parameters, OfPicturesThatPilWrote) {
  EXPECT_EQ(read_parameters(golden_image("rgb.png")).value(), kText);       // tEXt
  EXPECT_EQ(read_parameters(golden_image("rgba.png")).value(), kWideText);  // iTXt
  EXPECT_EQ(read_parameters(golden_image("orientation3.jpg")).value(), kWideText);
  const Result<std::string> none = read_parameters(golden_image("gray.png"));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no generation parameters"));
}

class WrittenImage : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "sfumato_image_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_P(WrittenImage, ReadsBackWithItsText) {
  const fs::path path = folder_ / (std::string("a") + GetParam());
  Image picture(32, 24, 3);
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 32; ++x) picture.at(x, y)[0] = static_cast<uint8_t>(x * 8), picture.at(x, y)[2] = 90;
  for (const std::string& text : {std::string(kText), std::string(kWideText), std::string("\xff broken \xc3")}) {
    ASSERT_TRUE(write_image(path, picture, text));
    const Image again = read_image(path).value();
    EXPECT_EQ(again.width, 32);
    EXPECT_LE(worst_difference(again, picture), std::string(GetParam()) == ".png" ? 0 : 24);
    EXPECT_EQ(read_parameters(path).value(), text[0] == '\xff' ? "\ufffd broken \ufffd" : text);
  }
  ASSERT_TRUE(write_image(path, picture, ""));
  EXPECT_FALSE(read_parameters(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing else is left behind
}

INSTANTIATE_TEST_SUITE_P(Formats, WrittenImage, ::testing::Values(".png", ".jpg", ".jpeg", ".webp", ".PNG"));

TEST(WriteImage, SuffixAndFolder) {
  const Image picture(8, 8, 3);
  for (const char* name : {"a", "a.bmp", "a.png.gif", ".png"}) {
    const Result<void> written = write_image(name, picture, "");
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().kind, ErrorKind::kUsage);
  }
  const Result<void> written = write_image("no such folder/a.png", picture, "");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kRuntime);
}

TEST(WriteImage, GreyAndAlpha) {
  Image gray(5, 4, 1), rgba(5, 4, 4);
  for (size_t i = 0; i < gray.pixels.size(); ++i) gray.pixels[i] = static_cast<uint8_t>(i * 12);
  for (size_t i = 0; i < rgba.pixels.size(); ++i) rgba.pixels[i] = static_cast<uint8_t>(i * 3);
  for (const Image& image : {gray, rgba})
    EXPECT_EQ(decode(encode_image(image, ImageFormat::kPng, "").value()).value().pixels, image.pixels);
  for (const ImageFormat format : {ImageFormat::kJpeg, ImageFormat::kWebp})
    for (const Image& image : {gray, rgba}) EXPECT_TRUE(decode(encode_image(image, format, "").value()));
}

TEST(WriteImage, PromptTooLongForJpeg) {
  const Result<std::string> encoded = encode_image(Image(8, 8, 3), ImageFormat::kJpeg, std::string(40000, 'x'));
  ASSERT_FALSE(encoded);
  EXPECT_THAT(encoded.error().message, HasSubstr("PNG"));
}

}  // namespace
}  // namespace sfumato
