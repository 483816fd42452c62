#pragma once
#include <span>

#include "pipeline/latents.h"
#include "pipeline/model.h"

namespace sfumato {

/// A latent [C,h,w] as a small picture of h x w pixels by a linear map from its channels to RGB: rough, and free.
Image linear_preview(const Model& model, std::span<const float> latent, const LatentSize& size);

}  // namespace sfumato
