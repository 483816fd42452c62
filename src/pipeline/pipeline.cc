#include "pipeline/pipeline.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "image/convert.h"
#include "pipeline/conditioning.h"
#include "pipeline/init_image.h"
#include "pipeline/network.h"
#include "pipeline/parameters.h"
#include "pipeline/plan.h"
#include "sampling/noise.h"
#include "sampling/sampler.h"

namespace sfumato {
namespace {

const Error kInterrupted{ErrorKind::kCancelled, "[pipeline.generate] interrupted"};

}  // namespace

/// The pictures that go through the networks together.
struct Pipeline::Batch {
  int index = 0, count = 1;  ///< which of how many
  std::vector<uint64_t> seeds;
  std::vector<const Conditioning*> positive;  ///< one a picture
};

namespace {

/// Tells the caller where the work stands; an error when the caller says stop.
Result<void> report(const Request& request, const Progress& progress) {
  if (request.on_progress && !request.on_progress(progress)) return kInterrupted;
  return {};
}

}  // namespace

Result<Model> open_model(const PipelineOptions& options) {
  if (options.synthetic.empty()) return Model::open(options.model);
  if (options.model.empty()) return Model::open_synthetic(options.synthetic);
  return usage_error("[pipeline.load] expected a model or synthetic weights, got both");
}

Result<std::unique_ptr<Pipeline>> Pipeline::load(const PipelineOptions& options) {
  Model model = TRY(open_model(options));
  return std::unique_ptr<Pipeline>(
      new Pipeline(std::move(model), make_cpu_backend(options.threads), resolve_precision(options.precision)));
}

Result<void> Pipeline::check(const Request& request) const {
  TRY(make_plan(model_, request));
  return {};
}

Result<std::vector<Picture>> Pipeline::generate(const Request& request) try {
  warnings_.clear();
  const Plan plan = TRY(make_plan(model_, request));
  for (const std::string& note : plan.schedule.notes) warnings_.push_back(note);
  const int total = static_cast<int>(plan.prompts.size());
  const int batches = (total + plan.batch_size - 1) / plan.batch_size;

  TRY(report(request, {.stage = Progress::Stage::kText, .batches = batches}));
  TRY(TRY(programs_.vae_decoder(plan.latent.height, plan.latent.width, vae_precision_))->reserve());
  std::map<std::string, Conditioning> prompts;
  for (const std::string& prompt : request.prompts)
    if (!prompts.contains(prompt))
      prompts.emplace(prompt, TRY(encode_prompt(model_, programs_, prompt, request.clip_skip, warnings_)));
  Conditioning negative;
  if (plan.guided) negative = TRY(encode_negative(model_, programs_, request.negative_prompt, warnings_));

  std::vector<Picture> pictures;
  for (int b = 0; b < batches; ++b) {
    Batch batch{b, batches, {}, {}};
    const int first = b * plan.batch_size, last = std::min(total, first + plan.batch_size);
    for (int i = first; i < last; ++i) {
      batch.seeds.push_back(uint64_t{request.seed} + static_cast<uint64_t>(i));
      batch.positive.push_back(&prompts.at(plan.prompts[static_cast<size_t>(i)]));
    }
    const std::vector<float> latents = TRY(sample_batch(plan, request, batch, negative));
    for (int i = first; i < last; ++i) {
      TRY(report(request, {.stage = Progress::Stage::kDecode, .batch = b, .batches = batches}));
      const size_t one = plan.latent.elements(), at = static_cast<size_t>(i - first) * one;
      pictures.push_back(TRY(finish(plan, request, i, std::span(latents).subspan(at, one))));
      if (request.on_picture) TRY(request.on_picture(static_cast<size_t>(i), pictures.back()));
    }
  }
  return pictures;
} catch (const std::bad_alloc&) {
  return Error{ErrorKind::kOutOfMemory, "[pipeline.generate] out of memory; try a smaller size or batch"};
}

Result<std::vector<float>> Pipeline::sample_batch(const Plan& plan, const Request& request, const Batch& batch,
                                                  const Conditioning& negative) {
  const size_t one = plan.latent.elements();
  sampling::BatchNoise noise(request.rng, batch.seeds);
  std::vector<float> latents(one * batch.seeds.size());
  InitLatents init;
  if (request.init_image) {
    TRY(report(request, {.stage = Progress::Stage::kEncode, .batch = batch.index, .batches = batch.count}));
    init = TRY(encode_init_image(model_, programs_, plan, request, batch.seeds.size(), noise));
  }
  noise(latents);
  const std::vector<float> first_noise = init.mask.empty() ? std::vector<float>() : latents;
  if (request.init_image)
    sampling::add_noise(plan.schedule.start(), init.latents, latents, latents);
  else
    for (float& x : latents) x *= static_cast<float>(plan.schedule.init_noise_sigma);

  GuidedNetwork network(model_, programs_, plan, request, batch.positive, negative);
  const auto on_step = [&](const sampling::StepEvent& event) {
    if (!init.mask.empty()) keep_unmasked(init, plan, event.level, first_noise, event.latents);
    return bool(report(request, {.stage = Progress::Stage::kSample,
                                 .batch = batch.index,
                                 .batches = batch.count,
                                 .step = event.step,
                                 .steps = event.steps,
                                 .denoised = event.denoised,
                                 .latent = plan.latent}));
  };
  const Result<void> done = sampling::sample(plan.schedule, std::ref(network), latents, std::ref(noise), on_step);
  if (!done) return done.error().kind == ErrorKind::kCancelled ? kInterrupted : done.error();
  return latents;
}

Result<Picture> Pipeline::finish(const Plan& plan, const Request& request, int index, std::span<const float> latents) {
  Picture picture;
  picture.prompt = plan.prompts[static_cast<size_t>(index)];
  picture.seed = request.seed + static_cast<uint32_t>(index);
  picture.latents = Tensor::from(Shape{plan.latent.channels, plan.latent.height, plan.latent.width}, latents);
  Tensor scaled(Shape{1, plan.latent.height, plan.latent.width, plan.latent.channels});
  planes_to_pixels(latents, plan.latent, scaled.f32().data());
  for (float& x : scaled.f32()) x /= model_.vae.scaling_factor;
  picture.image = TRY(decode(scaled, plan));
  picture.parameters = parameters_text(model_.info, plan, request, picture);
  return picture;
}

Result<Image> Pipeline::decode(const Tensor& latent, const Plan& plan) {
  const TensorView inputs[] = {latent.view()};
  for (const Precision precision : {vae_precision_, Precision::kF32}) {
    Executable* decoder = TRY(programs_.vae_decoder(plan.latent.height, plan.latent.width, precision));
    const std::vector<Tensor> outputs = TRY(decoder->run(inputs));
    Result<Image> image = tensor_to_image(outputs[0]);
    if (image || precision == Precision::kF32) return image;
    vae_precision_ = Precision::kF32;
    warnings_.push_back(str("the autoencoder overflowed at ", precision_name(precision), "; decoded again at fp32"));
  }
  CHECK(false);
}

}  // namespace sfumato
