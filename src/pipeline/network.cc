#include "pipeline/network.h"

#include <algorithm>

#include "sampling/guidance.h"

namespace sfumato {
namespace {

// Rows of all conditionings one after the other: negatives first, as the reference pipelines order them.
Tensor stack(const std::vector<const Tensor*>& parts) {
  std::vector<int64_t> dims = parts[0]->shape().dims();
  dims.insert(dims.begin(), static_cast<int64_t>(parts.size()));
  Tensor out{Shape(std::move(dims))};
  float* at = out.f32().data();
  for (const Tensor* part : parts) at = std::copy(part->f32().begin(), part->f32().end(), at);
  return out;
}

// SDXL's [original height, width, crop top, left, target height, width] of a picture.
void write_size_conditioning(const PictureInputs& picture, float* out) {
  const Request& request = *picture.request;
  const Size original = request.original_size.value_or(picture.plan->size);
  const Size target = request.target_size.value_or(picture.plan->size);
  const int row[] = {original.height, original.width, request.crop_top, request.crop_left, target.height, target.width};
  std::copy(std::begin(row), std::end(row), out);
}

}  // namespace

GuidedNetwork::GuidedNetwork(const Model& model, Programs& programs, std::vector<PictureInputs> pictures)
    : model_(model),
      programs_(programs),
      pictures_(std::move(pictures)),
      latent_(pictures_[0].plan->latent),
      guided_(pictures_[0].plan->guided),
      per_device_(programs.backend().fills_batches() ? static_cast<size_t>(pictures_[0].plan->batch_size)
                                                     : pictures_.size()) {
  for (int d = 0; d < programs.backend().devices(); ++d) shards_.push_back(make_shard(static_cast<size_t>(d)));
}

GuidedNetwork::Shard GuidedNetwork::make_shard(size_t index) const {
  std::vector<const Tensor*> contexts, pooled;
  const auto add = [&](const Conditioning& c) {
    contexts.push_back(&c.context);
    pooled.push_back(&c.pooled);
  };
  if (guided_)
    for (size_t i = 0; i < per_device_; ++i) add(*pictures_[picture(index, i)].negative);
  for (size_t i = 0; i < per_device_; ++i) add(*pictures_[picture(index, i)].positive);
  Shard shard;
  const int rows = static_cast<int>(contexts.size());
  shard.context = stack(contexts);
  if (model_.has_size_conditioning()) {
    shard.pooled = stack(pooled);
    shard.time_ids = Tensor(Shape{rows, 6});
    for (size_t r = 0; r < contexts.size(); ++r)
      write_size_conditioning(pictures_[picture(index, r % per_device_)], shard.time_ids.f32().data() + 6 * r);
  }
  shard.sample = Tensor(Shape{rows, latent_.height, latent_.width, latent_.channels});
  shard.timesteps = Tensor(Shape{rows});
  return shard;
}

Result<void> GuidedNetwork::operator()(std::span<const float> latents, float timestep, std::span<float> out) {
  const size_t one = latent_.elements(), batch = one * per_device_;
  std::vector<std::vector<TensorView>> inputs;
  for (size_t s = 0; s < shards_.size(); ++s) {
    Shard& shard = shards_[s];
    float* sample = shard.sample.f32().data();
    for (size_t i = 0; i < per_device_; ++i)
      planes_to_pixels(latents.subspan(picture(s, i) * one, one), latent_, sample + i * one);
    if (guided_) std::copy_n(sample, batch, sample + batch);
    std::ranges::fill(shard.timesteps.f32(), timestep);
    inputs.push_back({shard.sample.view(), shard.timesteps.view(), shard.context.view()});
    if (model_.has_size_conditioning())
      inputs.back().insert(inputs.back().end(), {shard.pooled.view(), shard.time_ids.view()});
  }
  const Shape& shape = shards_[0].context.shape();
  Executable* unet =
      TRY(programs_.unet(static_cast<int>(shape[0]), latent_.height, latent_.width, static_cast<int>(shape[1])));
  const std::vector<std::vector<Tensor>> outputs = TRY(unet->run_each(inputs));

  std::vector<float> unconditional(one), conditional(one);
  for (size_t p = 0; p < pictures_.size(); ++p) {  // a picture at a time: the rescale takes its deviation over one
    const float* predicted = outputs[p / per_device_][0].f32().data() + p % per_device_ * one;
    const std::span<float> guided = out.subspan(p * one, one);
    if (!guided_) {
      pixels_to_planes(predicted, latent_, guided);
      continue;
    }
    pixels_to_planes(predicted, latent_, unconditional);
    pixels_to_planes(predicted + batch, latent_, conditional);
    sampling::guide(conditional, unconditional, pictures_[p].plan->guidance, pictures_[p].request->guidance_rescale,
                    guided);
  }
  return {};
}

}  // namespace sfumato
