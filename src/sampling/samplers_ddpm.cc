// The samplers that grew out of DDPM: alpha^2 + sigma^2 = 1.
#include "sampling/run.h"

namespace sfumato::sampling {
namespace {

/// Of x at `level`, whose image is known, to `to`: the image at its strength there, and `noise` of the noise found.
void ddim_step(std::span<float> x, const Level& level, std::span<const float> image, double alpha, double noise) {
  const double keep = noise / level.sigma;  // noise found = (x - level.alpha * image) / level.sigma
  assign(x, Term{keep, x}, Term{alpha - keep * level.alpha, image});
}

}  // namespace

/// DDIMScheduler; eta 1 is as random as DDPM.
Result<void> ddim(Run& run) {
  const double eta = run.schedule.config.eta.value_or(0);
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const Level &from = run.level(i), &to = run.level(i + 1);
    const double fresh = to.sigma / from.sigma * std::sqrt(std::max(0.0, 1 - std::pow(from.alpha / to.alpha, 2))) * eta;
    TRY(run.denoise(run.x, from, image));
    ddim_step(run.x, from, image, to.alpha, std::sqrt(std::max(0.0, to.sigma * to.sigma - fresh * fresh)));
    run.add_noise(run.x, fresh);
    TRY(run.report(i, image));
  }
  return {};
}

/// DDPMScheduler.
Result<void> ddpm(Run& run) {
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const Level &from = run.level(i), &to = run.level(i + 1);
    const double alpha = from.alpha / to.alpha, beta = 1 - alpha * alpha;  // of the step, sqrt(alpha_t) and beta_t
    const double from2 = from.sigma * from.sigma, to2 = to.sigma * to.sigma;
    TRY(run.denoise(run.x, from, image));
    assign(run.x, Term{alpha * to2 / from2, run.x}, Term{to.alpha * beta / from2, image});
    const double variance = run.schedule.config.variance_type == Variance::kLarge ? beta : to2 / from2 * beta;
    if (from.timestep > 0) run.add_noise(run.x, std::sqrt(std::max(0.0, variance)));
    TRY(run.report(i, image));
  }
  return {};
}

/// LCMScheduler (Luo et al. 2023): each step jumps to the image and adds the next level's noise.
Result<void> lcm(Run& run) {
  constexpr double kSigmaData = 0.5;
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const Level &from = run.level(i), &to = run.level(i + 1);
    const double t = from.timestep * run.schedule.config.timestep_scaling, norm2 = t * t + kSigmaData * kSigmaData;
    TRY(run.denoise(run.x, from, image));
    assign(image, Term{t / std::sqrt(norm2), image}, Term{kSigmaData * kSigmaData / norm2, run.x});
    const bool last = i + 1 == run.steps();
    assign(run.x, Term{last ? 1 : to.alpha, image});
    if (!last) run.add_noise(run.x, to.sigma);
    TRY(run.report(i, image));
  }
  return {};
}

/// TCDScheduler (Zheng et al. 2024): down past the next level to s, then noise up to it again.
Result<void> tcd(Run& run) {
  const double eta = run.schedule.config.eta.value_or(0.3);
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const Level &from = run.level(i), &to = run.level(i + 1);
    const float below = std::floor(static_cast<float>(1 - eta) * to.timestep);  // single precision: multiples of ten
    const Level s = run.schedule.table.at(static_cast<int>(below));
    TRY(run.denoise(run.x, from, image));
    ddim_step(run.x, from, image, s.alpha, s.sigma);
    if (i + 1 < run.steps() && eta > 0) {
      const double scale = to.alpha / s.alpha;
      assign(run.x, Term{scale, run.x});
      run.add_noise(run.x, std::sqrt(std::max(0.0, 1 - scale * scale)));
    }
    TRY(run.report(i, image));
  }
  return {};
}

}  // namespace sfumato::sampling
