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
#include "pipeline/preview.h"
#include "sampling/noise.h"
#include "sampling/sampler.h"

namespace sfumato {
namespace {

const Error kInterrupted{ErrorKind::kCancelled, "[pipeline.generate] interrupted"};

}  // namespace

/// A request on its way to its pictures.
struct Pipeline::Task {
  const Request* request;
  Plan plan;
  Result<std::vector<Picture>>* result;  ///< grows; an error when it was stopped or failed
  std::vector<std::string>* warnings;    ///< its own alone: they quote its prompts
  const Conditioning* negative = nullptr;
  std::vector<const Conditioning*> positive = {};  ///< one a picture
  int first_batch = 0, batches = 1;                ///< of all the batches, those with its pictures

  bool is_over() const { return !*result || (*result)->size() == plan.prompts.size(); }
  /// Tells the caller where the work stands. False: it is to stop.
  bool tell(const Progress& progress) {
    if (!is_over() && request->on_progress && !request->on_progress(progress)) *result = kInterrupted;
    return !is_over();
  }
};

/// Each prompt is encoded once, whoever has it.
struct Pipeline::Encodings {
  struct Entry {
    Conditioning conditioning;
    std::vector<std::string> warnings;
  };
  std::map<std::pair<std::string, int>, Entry> prompts;  ///< by text and clip skip
  std::map<std::optional<std::string>, Entry> negatives;
};

/// A picture in a batch.
struct Pipeline::Slot {
  Task* task;
  int index;  ///< of the task's pictures
  int batch;  ///< the one it goes to if no task is stopped

  Progress progress(Progress::Stage stage) const {
    return {.stage = stage, .batch = batch - task->first_batch, .batches = task->batches};
  }
};

std::string_view stage_name(Progress::Stage stage) {
  constexpr std::string_view kNames[] = {"text", "encode", "sample", "decode"};
  return kNames[static_cast<int>(stage)];
}

Result<Model> open_model(const PipelineOptions& options) {
  if (!options.synthetic.empty() && !options.model.empty())
    return usage_error("[pipeline.load] expected a model or synthetic weights, got both");
  Model model = TRY(options.synthetic.empty() ? Model::open(options.model) : Model::open_synthetic(options.synthetic));
  if (options.taesd.empty()) return model;
  model.taesd = TRY(Taesd::open(options.taesd));
  if (model.taesd->config.latent_channels != model.vae.latent_channels ||
      model.taesd->config.factor() != model.vae_factor())
    return input_error(str("[pipeline.taesd] \"", printable(options.taesd.string()), "\": expected one for latents of ",
                           model.vae.latent_channels, " channels and 1/", model.vae_factor(), " of the size"));
  return model;
}

Result<std::unique_ptr<Pipeline>> Pipeline::load(const PipelineOptions& options) {
  Model model = TRY(open_model(options));
  std::unique_ptr<Backend> backend =
      options.pjrt ? TRY(make_pjrt_backend(options.accelerator)) : make_cpu_backend(options.threads);
  const Precision precision = backend->resolve(options.precision);
  return std::unique_ptr<Pipeline>(new Pipeline(std::move(model), std::move(backend), precision));
}

Result<void> Pipeline::check(const Request& request) const {
  TRY(make_plan(model_, request));
  return {};
}

Result<std::vector<Picture>> Pipeline::generate(const Request& request) {
  return std::move(generate_together(std::span(&request, 1)).front());
}

std::vector<Result<std::vector<Picture>>> Pipeline::generate_together(std::span<const Request> requests) {
  warnings_.assign(std::max<size_t>(1, requests.size()), {});
  std::vector<Result<std::vector<Picture>>> results;
  for (size_t i = 0; i < requests.size(); ++i) results.push_back(std::vector<Picture>());
  std::vector<Task> tasks;
  for (size_t i = 0; i < requests.size(); ++i) {
    Result<Plan> plan = make_plan(model_, requests[i]);
    if (plan)
      tasks.push_back({&requests[i], std::move(*plan), &results[i], &warnings_[i]});
    else
      results[i] = plan.error();
  }
  if (tasks.empty()) return results;
  if (const Result<void> drawn = draw(tasks); !drawn)
    for (Task& task : tasks)
      if (!task.is_over()) *task.result = drawn.error();
  return results;
}

Result<void> Pipeline::draw(std::span<Task> tasks) try {
  const Plan& plan = tasks.front().plan;
  const int devices = backend_->devices();
  if (backend_->fills_batches()) {  // as many a device as asked for, else one
    size_t total = 0;
    for (const Task& task : tasks) total += task.plan.prompts.size();
    const int most = (static_cast<int>(total) + devices - 1) / devices;
    for (Task& task : tasks) task.plan.batch_size = std::min(std::max(task.request->batch_size, 1), most);
  }
  const int pass = plan.batch_size * devices;
  std::vector<Slot> slots;
  for (Task& task : tasks) {
    const std::string key = batch_key(task.plan, *task.request);
    CHECK(tasks.size() == 1 || (!key.empty() && key == batch_key(plan, *tasks.front().request)), "requests are alike");
    *task.warnings = task.plan.schedule.notes;
    task.first_batch = static_cast<int>(slots.size()) / pass;
    for (size_t i = 0; i < task.plan.prompts.size(); ++i)
      slots.push_back({&task, static_cast<int>(i), static_cast<int>(slots.size()) / pass});
    task.batches = slots.back().batch - task.first_batch + 1;
    task.tell({.stage = Progress::Stage::kText, .batches = task.batches});
  }
  TRY(TRY(programs_.vae_decoder(plan.latent.height, plan.latent.width, vae_precision_))->reserve());
  Encodings encodings;
  for (Task& task : tasks)
    if (!task.is_over()) TRY(encode(task, encodings));
  for (size_t next = 0; next < slots.size();) {
    std::vector<Slot> batch;
    for (; next < slots.size() && batch.size() < static_cast<size_t>(pass); ++next)
      if (!slots[next].task->is_over()) batch.push_back(slots[next]);
    if (!batch.empty()) TRY(draw_batch(batch));
  }
  return {};
} catch (const std::bad_alloc&) {
  return Error{ErrorKind::kOutOfMemory, "[pipeline.generate] out of memory; try a smaller size or batch"};
}

Result<void> Pipeline::encode(Task& task, Encodings& encodings) {
  const Request& request = *task.request;
  const auto warn = [&](const Encodings::Entry& entry) {
    task.warnings->insert(task.warnings->end(), entry.warnings.begin(), entry.warnings.end());
  };
  for (const std::string& prompt : task.plan.prompts) {
    const auto [at, is_new] = encodings.prompts.try_emplace({prompt, request.clip_skip});
    Encodings::Entry& entry = at->second;
    if (is_new) entry.conditioning = TRY(encode_prompt(model_, programs_, prompt, request.clip_skip, entry.warnings));
    const bool is_known = std::ranges::count(task.positive, &entry.conditioning) > 0;  // several pictures of one prompt
    if (!is_known) warn(entry);
    task.positive.push_back(&entry.conditioning);
  }
  if (!task.plan.guided) return {};
  const auto [at, is_new] = encodings.negatives.try_emplace(request.negative_prompt);
  Encodings::Entry& entry = at->second;
  if (is_new) entry.conditioning = TRY(encode_negative(model_, programs_, request.negative_prompt, entry.warnings));
  warn(entry);
  task.negative = &entry.conditioning;
  return {};
}

Result<void> Pipeline::draw_batch(std::span<const Slot> batch) {
  const Result<std::vector<float>> latents = sample_batch(batch);
  if (!latents && latents.error().kind == ErrorKind::kCancelled) return {};
  if (!latents) return latents.error();
  const Plan& plan = batch.front().task->plan;
  const size_t one = plan.latent.elements(), devices = static_cast<size_t>(backend_->devices());
  for (size_t first = 0; first < batch.size(); first += devices) {
    std::vector<const Slot*> slots;
    std::vector<std::span<const float>> wanted;
    for (size_t i = first; i < std::min(batch.size(), first + devices); ++i) {
      if (!batch[i].task->tell(batch[i].progress(Progress::Stage::kDecode))) continue;
      slots.push_back(&batch[i]);
      wanted.push_back(std::span(*latents).subspan(i * one, one));
    }
    if (slots.empty()) continue;
    std::string remark;
    std::vector<Image> images = TRY(decode(wanted, plan, remark));
    for (size_t i = 0; i < slots.size(); ++i) {
      Task& task = *slots[i]->task;
      if (!remark.empty() && std::ranges::count(*task.warnings, remark) == 0) task.warnings->push_back(remark);
      if (task.is_over()) continue;  // stopped while the picture before was taken
      std::vector<Picture>& pictures = **task.result;
      pictures.push_back(finish(task, slots[i]->index, wanted[i], std::move(images[i])));
      if (!task.request->on_picture) continue;
      const Result<void> taken = task.request->on_picture(pictures.size() - 1, pictures.back());
      if (!taken) *task.result = taken.error();
    }
  }
  return {};
}

Result<std::vector<float>> Pipeline::sample_batch(std::span<const Slot> batch) {
  Task& first = *batch.front().task;
  const Plan& plan = first.plan;
  const Request& request = *first.request;
  const size_t one = plan.latent.elements();
  std::vector<uint64_t> seeds;
  std::vector<PictureInputs> inputs;
  for (const Slot& slot : batch) {
    const Task& task = *slot.task;
    seeds.push_back(uint64_t{task.request->seed} + static_cast<uint64_t>(slot.index));
    inputs.push_back({&task.plan, task.request, task.positive[static_cast<size_t>(slot.index)], task.negative});
  }
  sampling::BatchNoise noise(request.rng, seeds);
  std::vector<float> latents(one * batch.size());
  InitLatents init;
  if (request.init_image) {  // then all pictures are this request's
    if (!first.tell(batch.front().progress(Progress::Stage::kEncode))) return kInterrupted;
    init = TRY(encode_init_image(model_, programs_, plan, request, batch.size(), noise));
  }
  noise(latents);
  const std::vector<float> first_noise = init.mask.empty() ? std::vector<float>() : latents;
  if (request.init_image)
    sampling::add_noise(plan.schedule.start(), init.latents, latents, latents);
  else
    for (float& x : latents) x *= static_cast<float>(plan.schedule.init_noise_sigma);

  GuidedNetwork network(model_, programs_, std::move(inputs));
  const auto on_step = [&](const sampling::StepEvent& event) {
    if (!init.mask.empty()) keep_unmasked(init, plan, event.level, first_noise, event.latents);
    bool go_on = false;
    for (size_t begin = 0, end = 0; begin < batch.size(); begin = end) {  // a task's pictures stand together
      while (end < batch.size() && batch[end].task == batch[begin].task) ++end;
      Progress progress = batch[begin].progress(Progress::Stage::kSample);
      progress.step = event.step;
      progress.steps = event.steps;
      progress.denoised = event.denoised.subspan(begin * one, (end - begin) * one);
      progress.latent = plan.latent;
      go_on |= batch[begin].task->tell(progress);
    }
    return go_on;
  };
  TRY(sampling::sample(plan.schedule, std::ref(network), latents, std::ref(noise), on_step));
  return latents;
}

Result<Image> Pipeline::preview(std::span<const float> latent, const LatentSize& size) {
  if (!model_.taesd) return linear_preview(model_, latent, size);
  Tensor input(Shape{1, size.height, size.width, size.channels});
  planes_to_pixels(latent, size, input.f32().data());
  Executable* decoder = TRY(programs_.taesd_decoder(size.height, size.width));
  const TensorView view = input.view();
  std::vector<Tensor> outputs = TRY(decoder->run({&view, 1}));
  for (float& x : outputs[0].f32()) x = 2 * x - 1;
  return tensor_to_image(outputs[0]);
}

Picture Pipeline::finish(const Task& task, int index, std::span<const float> latents, Image image) const {
  const Plan& plan = task.plan;
  Picture picture;
  picture.prompt = plan.prompts[static_cast<size_t>(index)];
  picture.seed = task.request->seed + static_cast<uint32_t>(index);
  picture.latents = Tensor::from(Shape{plan.latent.channels, plan.latent.height, plan.latent.width}, latents);
  picture.image = std::move(image);
  picture.parameters = parameters_text(model_.info, plan, *task.request, picture);
  return picture;
}

Result<std::vector<Image>> Pipeline::decode(const std::vector<std::span<const float>>& latents, const Plan& plan,
                                            std::string& remark) {
  std::vector<Tensor> scaled;
  for (const std::span<const float> one : latents) {
    scaled.emplace_back(Shape{1, plan.latent.height, plan.latent.width, plan.latent.channels});
    planes_to_pixels(one, plan.latent, scaled.back().f32().data());
    for (float& x : scaled.back().f32()) x /= model_.vae.scaling_factor;
  }
  std::vector<std::vector<TensorView>> inputs;
  for (size_t d = 0; d < static_cast<size_t>(backend_->devices()); ++d)  // with none left, the last one again
    inputs.push_back({scaled[std::min(d, scaled.size() - 1)].view()});
  for (const Precision precision : {vae_precision_, Precision::kF32}) {
    Executable* decoder = TRY(programs_.vae_decoder(plan.latent.height, plan.latent.width, precision));
    const std::vector<std::vector<Tensor>> outputs = TRY(decoder->run_each(inputs));
    std::vector<Image> images;
    std::optional<Error> fault;
    for (size_t i = 0; i < scaled.size() && !fault; ++i) {
      Result<Image> image = tensor_to_image(outputs[i][0]);
      if (image)
        images.push_back(std::move(*image));
      else
        fault = image.error();
    }
    if (!fault) return images;
    if (precision == Precision::kF32) return *fault;
    vae_precision_ = Precision::kF32;
    remark = str("the autoencoder overflowed at ", precision_name(precision), "; decoded again at fp32");
  }
  CHECK(false);
}

}  // namespace sfumato
