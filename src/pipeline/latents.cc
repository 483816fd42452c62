#include "pipeline/latents.h"

#include <algorithm>
#include <cmath>

namespace sfumato {

void planes_to_pixels(std::span<const float> planes, const LatentSize& size, float* pixels) {
  const size_t area = static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
  const auto channels = static_cast<size_t>(size.channels);
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < area; ++i) pixels[i * channels + c] = planes[c * area + i];
}

void pixels_to_planes(const float* pixels, const LatentSize& size, std::span<float> planes) {
  const size_t area = static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
  const auto channels = static_cast<size_t>(size.channels);
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < area; ++i) planes[c * area + i] = pixels[i * channels + c];
}

void sample_moments(const float* moments, const LatentSize& size, std::span<const float> noise, float scaling_factor,
                    std::span<float> latents) {
  const size_t area = static_cast<size_t>(size.height) * static_cast<size_t>(size.width);
  const auto channels = static_cast<size_t>(size.channels);
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < area; ++i) {
      const float mean = moments[i * 2 * channels + c];
      const float log_variance = std::clamp(moments[i * 2 * channels + channels + c], -30.0f, 20.0f);
      latents[c * area + i] = scaling_factor * (mean + std::exp(0.5f * log_variance) * noise[c * area + i]);
    }
}

std::vector<float> latent_mask(const Image& mask, const LatentSize& size) {
  std::vector<float> out;
  for (int y = 0; y < size.height; ++y)
    for (int x = 0; x < size.width; ++x) {
      const size_t at = static_cast<size_t>(y * mask.height / size.height) * static_cast<size_t>(mask.width) +
                        static_cast<size_t>(x * mask.width / size.width);
      out.push_back(mask.pixels[at * static_cast<size_t>(mask.channels)] >= 128 ? 1.0f : 0.0f);
    }
  return out;
}

}  // namespace sfumato
