#include "pipeline/parameters.h"

#include "base/strings.h"
#include "base/version.h"
#include "image/parameters.h"

namespace sfumato {

std::string parameters_text(const ModelInfo& model, const Plan& plan, const Request& request, const Picture& picture) {
  GenerationInfo info{picture.prompt, plan.guided ? request.negative_prompt.value_or("") : "", {}};
  const auto add = [&](const char* key, const auto& value) { info.fields.emplace_back(key, str(value)); };
  add("Steps", plan.steps);
  add("Sampler", sampling::sampler_name(plan.schedule.sampler));
  add("Schedule type", sampling::schedule_name(plan.schedule_kind));
  add("CFG scale", plan.guidance);
  add("Seed", picture.seed);
  add("Size", str(plan.size.width, "x", plan.size.height));
  add("Model hash", model.hash);
  add("Model", model.name);
  if (request.init_image) add("Denoising strength", request.strength);
  if (request.guidance_rescale != 0) add("CFG Rescale phi", request.guidance_rescale);
  if (request.clip_skip != 1) add("Clip skip", request.clip_skip);
  if (request.prediction) add("Prediction", sampling::prediction_name(*request.prediction));
  if (request.rng != sampling::RngKind::kCpu) add("RNG", sampling::rng_name(request.rng));
  add("Version", str("sfumato ", kVersion));
  return format_parameters(info);
}

}  // namespace sfumato
