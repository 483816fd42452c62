#include "sampling/sampler.h"

#include "base/check.h"
#include "sampling/run.h"

namespace sfumato::sampling {

Result<void> Run::predict(std::span<const float> latents, const Level& level, std::span<float> raw) {
  assign(scaled_, Term{1 / std::hypot(level.alpha, level.sigma), latents});
  return network_(scaled_, level.timestep, raw);
}

void Run::to_image(std::span<const float> latents, const Level& level, std::span<const float> raw,
                   std::span<float> image) const {
  const double norm = std::hypot(level.alpha, level.sigma);
  switch (schedule.config.prediction_type) {
    case PredictionType::kEpsilon:
      return assign(image, Term{1 / level.alpha, latents}, Term{-level.sigma / level.alpha, raw});
    case PredictionType::kV:
      return assign(image, Term{level.alpha / (norm * norm), latents}, Term{-level.sigma / norm, raw});
    case PredictionType::kSample:
      return assign(image, Term{1, raw});
  }
}

void Run::to_noise(std::span<const float> latents, const Level& level, std::span<const float> raw,
                   std::span<float> eps) const {
  const double norm = std::hypot(level.alpha, level.sigma);
  switch (schedule.config.prediction_type) {
    case PredictionType::kEpsilon:
      return assign(eps, Term{1, raw});
    case PredictionType::kV:
      return assign(eps, Term{level.sigma / (norm * norm), latents}, Term{level.alpha / norm, raw});
    case PredictionType::kSample:
      return assign(eps, Term{1 / level.sigma, latents}, Term{-level.alpha / level.sigma, raw});
  }
}

Result<void> Run::denoise(std::span<const float> latents, const Level& level, std::span<float> image) {
  TRY(predict(latents, level, raw_));
  to_image(latents, level, raw_, image);
  return {};
}

void Run::add_noise(std::span<float> out, double scale) {
  if (scale == 0) return;
  fresh_.resize(out.size());
  noise_(fresh_);
  assign(out, Term{1, out}, Term{scale, fresh_});
}

Result<void> Run::report(int done, int total, std::span<const float> image, int next) {
  const Level reached = next == steps() ? Level{} : level(next);
  if (on_step_ && !on_step_(StepEvent{done, total, image, x, reached}))
    return Error{ErrorKind::kCancelled, "[sampling.sample] stopped on request"};
  return {};
}

namespace {

/// In the order of SamplerKind.
constexpr std::array kSamplers = {
    euler,        euler_ancestral, heun, dpm2, dpm2_ancestral, dpmpp_2m, dpmpp_2m_sde, dpmpp_sde, dpmpp_2s_ancestral,
    dpmpp_3m_sde, unipc,           ddim, ddpm, pndm,           lms,      lcm,          tcd};
static_assert(kSamplers.size() == static_cast<size_t>(SamplerKind::kTcd) + 1);

}  // namespace

Result<void> sample(const Schedule& schedule, const Network& network, std::span<float> x, const NoiseFn& noise,
                    const StepFn& on_step) {
  CHECK(schedule.begin >= 0 && schedule.begin < schedule.steps(), "steps to run");
  Run run(schedule, network, x, noise, on_step);
  return kSamplers[static_cast<size_t>(schedule.sampler)](run);
}

void add_noise(const Level& level, std::span<const float> image, std::span<const float> noise, std::span<float> out) {
  CHECK(image.size() == noise.size() && noise.size() == out.size(), "equal lengths");
  assign(out, Term{level.alpha, image}, Term{level.sigma, noise});
}

}  // namespace sfumato::sampling
