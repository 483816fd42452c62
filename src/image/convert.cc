#include "image/convert.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace sfumato {
namespace {

/// One output pixel from each input pixel.
template <class PerPixel>
Image map_pixels(const Image& image, int channels, PerPixel per_pixel) {
  Image out(image.width, image.height, channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) per_pixel(image.at(x, y), out.at(x, y));
  return out;
}

}  // namespace

Image to_rgb(const Image& image) {
  return map_pixels(image, 3, [step = image.channels == 1 ? 0 : 1](const uint8_t* from, uint8_t* to) {
    for (int c = 0; c < 3; ++c) to[c] = from[c * step];
  });
}

Image to_gray(const Image& image) {
  if (image.channels == 1) return image;
  return map_pixels(image, 1, [](const uint8_t* from, uint8_t* to) {
    *to = static_cast<uint8_t>((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16);
  });
}

Image transparency(const Image& image) {
  if (image.channels != 4) return to_gray(image);
  return map_pixels(image, 1, [](const uint8_t* from, uint8_t* to) { *to = static_cast<uint8_t>(255 - from[3]); });
}

Tensor image_to_tensor(const Image& rgb) {
  Tensor out(Shape{1, rgb.height, rgb.width, 3});
  std::transform(rgb.pixels.begin(), rgb.pixels.end(), out.f32().begin(),
                 [](uint8_t v) { return 2.0f * (static_cast<float>(v) / 255.0f) - 1.0f; });
  return out;
}

Result<Image> tensor_to_image(const Tensor& tensor) {
  const auto values = tensor.f32();
  const auto bad = std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (bad > 0)
    return runtime_error(str("[image.convert] expected finite pixels, got ", bad, " of ", values.size(),
                             " that are not (NaN or infinity); try --precision fp32"));
  Image out(static_cast<int>(tensor.shape()[2]), static_cast<int>(tensor.shape()[1]), 3);
  std::transform(values.begin(), values.end(), out.pixels.begin(), [](float v) {
    return static_cast<uint8_t>(std::nearbyint(std::clamp(v / 2.0f + 0.5f, 0.0f, 1.0f) * 255.0f));
  });
  return out;
}

}  // namespace sfumato
