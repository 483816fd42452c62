#pragma once
// Between torch's order and ours, and between pictures and latents.
#include <cstdint>
#include <span>

#include "image/image.h"
#include "tensor/tensor.h"

namespace sfumato {

/// Height and width of a latent: a picture's divided by the autoencoder's factor.
struct LatentSize {
  int channels = 4, height = 0, width = 0;
  size_t elements() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
};

/// Noise comes in torch's order, [channels, height, width]; networks take [height, width, channels].
void planes_to_pixels(std::span<const float> planes, const LatentSize& size, float* pixels);
void pixels_to_planes(const float* pixels, const LatentSize& size, std::span<float> planes);

/// The autoencoder's moments [h,w,2C] (mean, log variance) and unit noise [C,h,w] -> latents [C,h,w] * scaling_factor.
/// diffusers' DiagonalGaussianDistribution: the log variance is clamped to -30..20.
void sample_moments(const float* moments, const LatentSize& size, std::span<const float> noise, float scaling_factor,
                    std::span<float> latents);

/// A mask for blending, one value a latent pixel: 1 where white (repaint), 0 where black. Thresholded at one half and
/// shrunk by nearest neighbour, as diffusers does.
std::vector<float> latent_mask(const Image& mask, const LatentSize& size);

}  // namespace sfumato
