#pragma once
// Drawing a latent out of noise, one noise level after the other. Nothing is kept between calls.
#include <functional>
#include <span>

#include "base/result.h"
#include "sampling/schedule.h"

namespace sfumato::sampling {

/// One pass of the network over the whole batch (guidance included): the latents, scaled as the network was trained on
/// them, and a timestep in; its raw prediction (schedule.config.prediction_type) out. All of one length.
using Network =
    std::function<Result<void>(std::span<const float> latents, float timestep, std::span<float> prediction)>;

/// Fills a span with fresh unit noise for the whole batch (sampling::BatchNoise).
using NoiseFn = std::function<void(std::span<float>)>;

/// A finished step.
struct StepEvent {
  int step = 0, steps = 0;          ///< steps done and to do; PNDM counts network passes
  std::span<const float> denoised;  ///< the latest estimate of the image
  std::span<float> latents;         ///< where the sampler stands now, at `level`; may be changed (inpainting)
  Level level;                      ///< alpha 1 and sigma 0 after the last step
};
/// Return false to stop: sample() then returns an error of kind kCancelled.
using StepFn = std::function<bool(const StepEvent&)>;

/// Runs the steps of `schedule` (from schedule.begin) on `x`: latents of the whole batch, back to back. In: unit noise
/// times schedule.init_noise_sigma, or a picture noised to schedule.start(). Out: the image's latents.
/// Every value depends only on its own place, so a batch equals its images one by one.
Result<void> sample(const Schedule& schedule, const Network& network, std::span<float> x, const NoiseFn& noise,
                    const StepFn& on_step = {});

/// out = alpha * image + sigma * noise; `out` may be `image` or `noise`.
void add_noise(const Level& level, std::span<const float> image, std::span<const float> noise, std::span<float> out);

}  // namespace sfumato::sampling
