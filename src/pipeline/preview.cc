#include "pipeline/preview.h"

#include <algorithm>
#include <cmath>

namespace sfumato {

Image linear_preview(const Model& model, std::span<const float> latent, const LatentSize& size) {
  const LatentRgb& rgb = model.info.latent_rgb;
  const auto plane = static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
  const size_t channels = std::min<size_t>(static_cast<size_t>(size.channels), rgb.factors.size());
  Image image(size.width, size.height, 3);
  for (size_t i = 0; i < plane; ++i)
    for (size_t c = 0; c < 3; ++c) {
      float value = rgb.bias[c];
      for (size_t k = 0; k < channels; ++k) value += rgb.factors[k][c] * latent[k * plane + i];
      const float level = std::isfinite(value) ? std::clamp((value + 1) * 127.5f, 0.0f, 255.0f) : 0;
      image.pixels[3 * i + c] = static_cast<uint8_t>(level + 0.5f);
    }
  return image;
}

}  // namespace sfumato
