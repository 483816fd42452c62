#pragma once
// Image to image and inpainting: the start is a picture, and where the mask is black it stays that picture.
#include <optional>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/programs.h"
#include "sampling/noise.h"

namespace sfumato {

struct InitLatents {
  std::vector<float> latents;  ///< one a picture, [C,h,w] back to back, scaled
  std::vector<float> mask;     ///< [h*w], 1: repaint; empty without a mask
};

/// The init image, resized to the plan's size, through the autoencoder's encoder. Each picture's latent is drawn from
/// the encoder's distribution with its own noise, which moves on by one latent, as in the reference pipelines.
Result<InitLatents> encode_init_image(const Model& model, Programs& programs, const Plan& plan, const Request& request,
                                      size_t pictures, sampling::BatchNoise& noise);

/// Inpainting by blending: outside the mask the latents become the init image's, noised with `noise` to `level`.
void keep_unmasked(const InitLatents& init, const Plan& plan, const sampling::Level& level,
                   std::span<const float> noise, std::span<float> latents);

}  // namespace sfumato
