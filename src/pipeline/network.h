#pragma once
// The U-Net as samplers see it: scaled latents and a timestep in, the guided prediction out.
#include <span>
#include <vector>

#include "pipeline/conditioning.h"
#include "pipeline/plan.h"

namespace sfumato {

/// One batch's network. Latents are [B,C,h,w] back to back, in torch's order.
class GuidedNetwork {
 public:
  /// `positive` has one entry a picture; `negative` is used when `plan.guided`.
  GuidedNetwork(const Model& model, Programs& programs, const Plan& plan, const Request& request,
                const std::vector<const Conditioning*>& positive, const Conditioning& negative);

  /// The network's prediction for `latents` at `timestep`, guidance and its rescale applied.
  Result<void> operator()(std::span<const float> latents, float timestep, std::span<float> out);

 private:
  const Model& model_;
  Programs& programs_;
  const Plan& plan_;
  float guidance_rescale_;
  int batch_;                                                // pictures
  Tensor sample_, timesteps_, context_, pooled_, time_ids_;  // for batch_ pictures, twice when guided
};

}  // namespace sfumato
