#include "pipeline/plan.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace sfumato {
namespace {

constexpr int kMaxSide = 4096, kMaxSteps = 1000, kMaxImages = 1000, kMaxBatch = 64;

Result<Size> checked_size(Size size, int multiple) {
  const auto check = [&](const char* field, int value) -> Result<void> {
    if (value >= multiple && value <= kMaxSide && value % multiple == 0) return {};
    const int below = std::clamp(value / multiple * multiple, multiple, kMaxSide);
    const int above = std::clamp(below + multiple, multiple, kMaxSide);
    return usage_error(str("[pipeline.size] ", field, " expected a multiple of ", multiple, " from ", multiple, " to ",
                           kMaxSide, ", got ", value, "; try ", below,
                           above != below ? str(" or ", above) : std::string()));
  };
  TRY(check("width", size.width));
  TRY(check("height", size.height));
  return size;
}

Result<void> check_range(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return usage_error(str("[pipeline.request] ", field, " expected ", low, " to ", high, ", got ", value));
}

Result<void> check_mode(const Model& model, const Request& request) {
  if (model.unet.in_channels != 4 || model.unet.out_channels != 4)
    return usage_error(str("[pipeline.model] expected a U-Net with 4 input channels, got ", model.unet.in_channels,
                           ": dedicated inpainting models (9 channels) are not supported yet; use the 4-channel model "
                           "with an init image and a mask"));
  if (request.mask && !request.init_image)
    return usage_error("[pipeline.inpaint] expected an init image with the mask, got a mask alone; give both");
  const bool has_xl_fields =
      request.original_size || request.target_size || request.crop_top != 0 || request.crop_left != 0;
  if (has_xl_fields && !model.has_size_conditioning())
    return usage_error(str("[pipeline.size] original size, target size and crop are for SDXL models, got ",
                           model.info.family, "; leave them out"));
  return {};
}

/// Small pictures share a pass; from 512x512 on a batch would take more memory and be no faster.
int default_batch(const LatentSize& latent) {
  return std::clamp(64 * 64 / (latent.height * latent.width), 1, 4);
}

Result<sampling::Schedule> plan_schedule(const Model& model, const Request& request, int steps) {
  sampling::SchedulerConfig config = model.info.scheduler;
  if (request.prediction) config.prediction_type = *request.prediction;
  const sampling::SamplerKind sampler = request.sampler ? *request.sampler : TRY(config.own_sampler());
  sampling::Schedule schedule =
      TRY(sampling::make_schedule(config, sampler, request.schedule.value_or(sampling::ScheduleKind::kModel), steps));
  if (request.init_image) TRY(sampling::truncate(schedule, request.strength));
  return schedule;
}

}  // namespace

Result<Plan> make_plan(const Model& model, const Request& request) {
  TRY(check_mode(model, request));
  TRY(check_range("guidance rescale", request.guidance_rescale, 0, 1));
  TRY(check_range("images", request.images, 1, kMaxImages));
  TRY(check_range("batch size", request.batch_size, 0, kMaxBatch));
  TRY(check_range("clip skip", request.clip_skip, 1, 12));
  TRY(check_range("prompts", static_cast<double>(request.prompts.size()), 1, kMaxImages));
  if (request.init_image) TRY(check_range("strength", request.strength, 0, 1));
  const int steps = request.steps.value_or(model.info.default_steps);
  TRY(check_range("steps", steps, 1, kMaxSteps));

  Plan plan(TRY(plan_schedule(model, request, steps)));
  plan.steps = steps;
  plan.schedule_kind = request.schedule.value_or(sampling::ScheduleKind::kModel);
  const int factor = model.vae_factor();
  Size size = request.size.value_or(Size());
  if (size.width == 0) size.width = model.info.default_size.width;
  if (size.height == 0) size.height = model.info.default_size.height;
  plan.size = TRY(checked_size(size, std::max(8, factor)));
  plan.latent = {model.vae.latent_channels, plan.size.height / factor, plan.size.width / factor};
  plan.guidance = request.guidance.value_or(model.info.default_guidance);
  TRY(check_range("guidance", plan.guidance, -100, 100));
  plan.guided = plan.guidance > 1;

  for (const std::string& prompt : request.prompts)
    plan.prompts.insert(plan.prompts.end(), static_cast<size_t>(request.images), prompt);
  const auto last_seed = uint64_t{request.seed} + plan.prompts.size() - 1;
  if (last_seed > UINT32_MAX)
    return usage_error(
        str("[pipeline.seed] expected seeds up to 4294967295, got ", last_seed, " for the last picture; start lower"));
  plan.batch_size = request.batch_size > 0 ? request.batch_size : default_batch(plan.latent);
  return plan;
}

std::string batch_key(const Plan& plan, const Request& request) {
  if (request.init_image) return "";
  return str(plan.size.width, "x", plan.size.height, " ", plan.steps, " ",
             sampling::sampler_name(plan.schedule.sampler), " ", sampling::schedule_name(plan.schedule_kind), " ",
             request.prediction ? sampling::prediction_name(*request.prediction) : "", " ",
             sampling::rng_name(request.rng), plan.guided ? " guided" : "");
}

}  // namespace sfumato
