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

// SDXL's [original height, width, crop top, left, target height, width] for every row.
Tensor size_conditioning(const Plan& plan, const Request& request, int rows) {
  const Size original = request.original_size.value_or(plan.size), target = request.target_size.value_or(plan.size);
  const int row[] = {original.height, original.width, request.crop_top, request.crop_left, target.height, target.width};
  Tensor out(Shape{rows, 6});
  for (int r = 0; r < rows; ++r) std::copy(std::begin(row), std::end(row), out.f32().begin() + 6 * r);
  return out;
}

}  // namespace

GuidedNetwork::GuidedNetwork(const Model& model, Programs& programs, const Plan& plan, const Request& request,
                             const std::vector<const Conditioning*>& positive, const Conditioning& negative)
    : model_(model),
      programs_(programs),
      plan_(plan),
      guidance_rescale_(request.guidance_rescale),
      batch_(static_cast<int>(positive.size())) {
  std::vector<const Tensor*> contexts, pooled;
  const auto add = [&](const Conditioning& c) {
    contexts.push_back(&c.context);
    pooled.push_back(&c.pooled);
  };
  if (plan.guided)
    for (int i = 0; i < batch_; ++i) add(negative);
  for (const Conditioning* c : positive) add(*c);
  const int rows = static_cast<int>(contexts.size());
  context_ = stack(contexts);
  if (model.has_size_conditioning()) {
    pooled_ = stack(pooled);
    time_ids_ = size_conditioning(plan, request, rows);
  }
  sample_ = Tensor(Shape{rows, plan.latent.height, plan.latent.width, plan.latent.channels});
  timesteps_ = Tensor(Shape{rows});
}

Result<void> GuidedNetwork::operator()(std::span<const float> latents, float timestep, std::span<float> out) {
  const size_t one = plan_.latent.elements(), batch = one * static_cast<size_t>(batch_);
  for (size_t at = 0; at < batch; at += one)
    planes_to_pixels(latents.subspan(at, one), plan_.latent, sample_.f32().data() + at);
  if (plan_.guided) std::copy_n(sample_.f32().data(), batch, sample_.f32().data() + batch);
  std::ranges::fill(timesteps_.f32(), timestep);

  std::vector<TensorView> inputs = {sample_.view(), timesteps_.view(), context_.view()};
  if (model_.has_size_conditioning()) inputs.insert(inputs.end(), {pooled_.view(), time_ids_.view()});
  const Shape& shape = context_.shape();
  Executable* unet = TRY(
      programs_.unet(static_cast<int>(shape[0]), plan_.latent.height, plan_.latent.width, static_cast<int>(shape[1])));
  const std::vector<Tensor> outputs = TRY(unet->run(inputs));

  std::vector<float> predicted(outputs[0].f32().size());
  for (size_t at = 0; at < predicted.size(); at += one)
    pixels_to_planes(outputs[0].f32().data() + at, plan_.latent, std::span(predicted).subspan(at, one));
  const std::span<const float> all(predicted);
  if (!plan_.guided) {
    std::ranges::copy(all, out.begin());
    return {};
  }
  for (size_t at = 0; at < batch; at += one)  // a picture at a time: the rescale takes its deviation over one
    sampling::guide(all.subspan(batch + at, one), all.subspan(at, one), plan_.guidance, guidance_rescale_,
                    out.subspan(at, one));
  return {};
}

}  // namespace sfumato
