#pragma once
// Classifier-free guidance on the network's raw predictions.
#include <span>

namespace sfumato::sampling {

/// out = unconditional + scale * (conditional - unconditional), for one image; `out` may be either.
/// With `rescale` in 0..1 the standard deviation is drawn that far back to the conditional one's
/// (Lin et al. 2023, section 3.4).
void guide(std::span<const float> conditional, std::span<const float> unconditional, float scale, float rescale,
           std::span<float> out);

}  // namespace sfumato::sampling
