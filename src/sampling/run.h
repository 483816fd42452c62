#pragma once
// What the samplers share: the state of one run, and sums of scaled vectors. Private to this folder.
#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <span>
#include <vector>

#include "sampling/sampler.h"

namespace sfumato::sampling {

using Vector = std::vector<float>;

struct Term {
  double scale;
  std::span<const float> vector;
};

/// out = sum of scale * vector, in double precision; `out` may be one of the vectors.
template <std::same_as<Term>... Terms>
void assign(std::span<float> out, const Terms&... terms) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>((... + (terms.scale * terms.vector[i])));
}

/// One call of sample().
class Run {
 public:
  Run(const Schedule& s, const Network& network, std::span<float> latents, const NoiseFn& noise, const StepFn& on_step)
      : schedule(s),
        x(latents),
        network_(network),
        noise_(noise),
        on_step_(on_step),
        scaled_(x.size()),
        raw_(x.size()) {}

  const Schedule& schedule;
  const std::span<float> x;

  int begin() const { return schedule.begin; }
  int steps() const { return schedule.steps(); }
  const Level& level(int i) const { return schedule.levels[i]; }
  Vector vector() const { return Vector(x.size()); }

  /// The network's raw prediction for latents at a level.
  Result<void> predict(std::span<const float> latents, const Level& level, std::span<float> raw);
  /// The image that a raw prediction means.
  void to_image(std::span<const float> latents, const Level& level, std::span<const float> raw,
                std::span<float> image) const;
  /// The noise that a raw prediction means.
  void to_noise(std::span<const float> latents, const Level& level, std::span<const float> raw,
                std::span<float> eps) const;
  /// predict() and to_image().
  Result<void> denoise(std::span<const float> latents, const Level& level, std::span<float> image);
  /// The alpha = 1 level of a sigma between the schedule's.
  Level between(double sigma) const { return {1, sigma, static_cast<float>(schedule.table.timestep(sigma))}; }

  /// out += scale * fresh noise; nothing is drawn when scale is 0.
  void add_noise(std::span<float> out, double scale);

  /// Tells the listener that x has reached level(next).
  Result<void> report(int done, int total, std::span<const float> image, int next);
  /// The same, for samplers that take one step a level.
  Result<void> report(int step, std::span<const float> image) {
    return report(step + 1 - begin(), steps() - begin(), image, step + 1);
  }

 private:
  const Network& network_;
  const NoiseFn& noise_;
  const StepFn& on_step_;
  Vector scaled_, raw_, fresh_;
};

/// Splits a step to `to` (sigmas with alpha 1) into one down to `down` and noise of `up` (k-diffusion, eta 1).
struct Ancestral {
  double down, up;
};
inline Ancestral ancestral(double from, double to) {
  const double up = std::min(to, std::sqrt(std::max(0.0, to * to * (from * from - to * to) / (from * from))));
  return {std::sqrt(std::max(0.0, to * to - up * up)), up};
}

// The samplers. Each follows the implementation named at its definition.
Result<void> euler(Run& run);
Result<void> euler_ancestral(Run& run);
Result<void> heun(Run& run);
Result<void> dpm2(Run& run);
Result<void> dpm2_ancestral(Run& run);
Result<void> lms(Run& run);
Result<void> dpmpp_2m(Run& run);
Result<void> dpmpp_2m_sde(Run& run);
Result<void> dpmpp_sde(Run& run);
Result<void> dpmpp_2s_ancestral(Run& run);
Result<void> dpmpp_3m_sde(Run& run);
Result<void> unipc(Run& run);
Result<void> ddim(Run& run);
Result<void> ddpm(Run& run);
Result<void> pndm(Run& run);
Result<void> lcm(Run& run);
Result<void> tcd(Run& run);

}  // namespace sfumato::sampling
