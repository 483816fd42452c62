#pragma once
// The U-Net as samplers see it: scaled latents and a timestep in, the guided prediction out.
#include <algorithm>
#include <span>
#include <vector>

#include "pipeline/conditioning.h"
#include "pipeline/plan.h"

namespace sfumato {

/// What one picture of a batch is drawn from; the pictures of a batch may belong to several requests.
struct PictureInputs {
  const Plan* plan = nullptr;
  const Request* request = nullptr;
  const Conditioning* positive = nullptr;
  const Conditioning* negative = nullptr;  ///< when plan->guided
};

/// One batch's network, a part of the batch on each device. Latents are [B,C,h,w] back to back, in torch's order.
class GuidedNetwork {
 public:
  /// One entry a picture, at most plan->batch_size a device; all plans are alike (plan.h: batch_key).
  GuidedNetwork(const Model& model, Programs& programs, std::vector<PictureInputs> pictures);

  /// The network's prediction for `latents` at `timestep`, guidance and its rescale applied.
  Result<void> operator()(std::span<const float> latents, float timestep, std::span<float> out);

 private:
  const Model& model_;
  Programs& programs_;
  std::vector<PictureInputs> pictures_;
  LatentSize latent_;
  bool guided_;
  /// What a device is given: a row a picture, two when guided.
  struct Shard {
    Tensor sample, timesteps, context, pooled, time_ids;
  };
  /// The picture at a place of a shard; places that no picture is left for repeat the last one.
  size_t picture(size_t shard, size_t place) const {
    return std::min(shard * per_device_ + place, pictures_.size() - 1);
  }
  Shard make_shard(size_t index) const;

  size_t per_device_;
  std::vector<Shard> shards_;
};

}  // namespace sfumato
