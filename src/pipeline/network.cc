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
      guided_(pictures_[0].plan->guided) {
  std::vector<const Tensor*> contexts, pooled;
  const auto add = [&](const Conditioning& c) {
    contexts.push_back(&c.context);
    pooled.push_back(&c.pooled);
  };
  if (guided_)
    for (const PictureInputs& picture : pictures_) add(*picture.negative);
  for (const PictureInputs& picture : pictures_) add(*picture.positive);
  const int rows = static_cast<int>(contexts.size());
  context_ = stack(contexts);
  if (model.has_size_conditioning()) {
    pooled_ = stack(pooled);
    time_ids_ = Tensor(Shape{rows, 6});
    for (size_t r = 0; r < contexts.size(); ++r)
      write_size_conditioning(pictures_[r % pictures_.size()], time_ids_.f32().data() + 6 * r);
  }
  sample_ = Tensor(Shape{rows, latent_.height, latent_.width, latent_.channels});
  timesteps_ = Tensor(Shape{rows});
}

Result<void> GuidedNetwork::operator()(std::span<const float> latents, float timestep, std::span<float> out) {
  const size_t one = latent_.elements(), batch = one * pictures_.size();
  for (size_t at = 0; at < batch; at += one)
    planes_to_pixels(latents.subspan(at, one), latent_, sample_.f32().data() + at);
  if (guided_) std::copy_n(sample_.f32().data(), batch, sample_.f32().data() + batch);
  std::ranges::fill(timesteps_.f32(), timestep);

  std::vector<TensorView> inputs = {sample_.view(), timesteps_.view(), context_.view()};
  if (model_.has_size_conditioning()) inputs.insert(inputs.end(), {pooled_.view(), time_ids_.view()});
  const Shape& shape = context_.shape();
  Executable* unet =
      TRY(programs_.unet(static_cast<int>(shape[0]), latent_.height, latent_.width, static_cast<int>(shape[1])));
  const std::vector<Tensor> outputs = TRY(unet->run(inputs));

  std::vector<float> predicted(outputs[0].f32().size());
  for (size_t at = 0; at < predicted.size(); at += one)
    pixels_to_planes(outputs[0].f32().data() + at, latent_, std::span(predicted).subspan(at, one));
  const std::span<const float> all(predicted);
  if (!guided_) {
    std::ranges::copy(all, out.begin());
    return {};
  }
  for (size_t i = 0; i < pictures_.size(); ++i)  // a picture at a time: the rescale takes its deviation over one
    sampling::guide(all.subspan(batch + i * one, one), all.subspan(i * one, one), pictures_[i].plan->guidance,
                    pictures_[i].request->guidance_rescale, out.subspan(i * one, one));
  return {};
}

}  // namespace sfumato
