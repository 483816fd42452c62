// DPM-Solver++ (Lu et al. 2022): exact in the linear part, a polynomial in lambda = log(alpha / sigma) for the image.
#include <algorithm>
#include <utility>

#include "sampling/run.h"

namespace sfumato::sampling {
namespace {

/// Of the latest steps' images, newest first; with the step lengths in lambda that led from one to the next.
struct History {
  Vector image[3];
  double length[2] = {0, 0};
  int count = 0;

  explicit History(const Run& run) : image{run.vector(), run.vector(), run.vector()} {}
  /// Makes room for a newest image that lies `h` after the one before.
  void push(double h) {
    std::rotate(image, image + 2, image + 3);
    length[1] = std::exchange(length[0], h);
    count = count > 0 && h <= 0 ? 1 : std::min(count + 1, 3);  // equal levels: nothing to extrapolate from
  }
};

double step_length(const Level& from, const Level& to) {
  return std::log(from.ratio() / to.ratio());
}

/// Divided differences of the history for a step of length h: first and second derivative, scaled by h and h^2.
struct Differences {
  double d1[3], d2[3];  // weights of the images
};
Differences differences(const History& past, double h, int order) {
  const double r0 = past.length[0] / h, r1 = past.length[1] / h;
  if (order == 2) return {{1 / r0, -1 / r0, 0}, {0, 0, 0}};
  // D10 = (m0 - m1) / r0, D11 = (m1 - m2) / r1; d2 = (D10 - D11) / (r0 + r1), d1 = D10 + r0 * d2
  const double both = r0 + r1;
  const double d2[3] = {1 / (r0 * both), -(1 / r0 + 1 / r1) / both, 1 / (r1 * both)};
  return {{1 / r0 + r0 * d2[0], -1 / r0 + r0 * d2[1], r0 * d2[2]}, {d2[0], d2[1], d2[2]}};
}

/// DPMSolverMultistepScheduler with algorithm_type dpmsolver++ or, if `sde`, sde-dpmsolver++.
Result<void> multistep(Run& run, bool sde) {
  const SchedulerConfig& c = run.schedule.config;
  const int n = run.steps(), max_order = sde ? std::min(c.solver_order, 2) : c.solver_order;
  History past(run);
  for (int i = run.begin(); i < n; ++i) {
    const Level &from = run.level(i), &to = run.level(i + 1);
    past.push(i == run.begin() ? 0 : step_length(run.level(i - 1), from));
    TRY(run.denoise(run.x, from, past.image[0]));

    int order = std::min(max_order, past.count);
    const bool few = c.lower_order_final && n < 15;
    if (i == n - 2 && few) order = std::min(order, 2);
    if (i == n - 1 && (few || c.euler_at_final || !c.final_sigma_min || to.sigma == 0)) order = 1;

    const double h = step_length(from, to), q = to.ratio() / from.ratio();  // q = exp(-h)
    if (!(h > 0)) order = 1;
    const double decay = sde ? q * q : q, length = sde ? 2 * h : h;
    const double gain = to.alpha * (1 - decay);
    double w[3] = {gain, 0, 0};
    if (order > 1) {
      const auto [d1, d2] = differences(past, h, order);
      const double phi2 = to.alpha * ((decay - 1) / length + 1),
                   phi3 = to.alpha * ((decay - 1 + length) / (length * length) - 0.5);
      const double first = order == 2 && !c.solver_heun ? 0.5 * gain : phi2;
      for (int k = 0; k < 3; ++k) w[k] += first * d1[k] - phi3 * d2[k];
    }
    assign(run.x, Term{to.sigma / from.sigma * (sde ? q : 1), run.x}, Term{w[0], past.image[0]},
           Term{w[1], past.image[1]}, Term{w[2], past.image[2]});
    if (sde) run.add_noise(run.x, to.sigma * std::sqrt(std::max(0.0, 1 - q * q)));
    TRY(run.report(i, past.image[0]));
  }
  return {};
}

}  // namespace

Result<void> dpmpp_2m(Run& run) {
  return multistep(run, false);
}

Result<void> dpmpp_2m_sde(Run& run) {
  return multistep(run, true);
}

/// k-diffusion's sample_dpmpp_3m_sde, eta 1.
Result<void> dpmpp_3m_sde(Run& run) {
  History past(run);
  for (int i = run.begin(); i < run.steps(); ++i) {
    const double from = run.level(i).sigma, to = run.level(i + 1).sigma;
    past.push(i == run.begin() ? 0 : step_length(run.level(i - 1), run.level(i)));
    TRY(run.denoise(run.x, run.level(i), past.image[0]));
    const double h = std::log(from / to), q = to / from;
    double w[3] = {1 - q * q, 0, 0};
    if (to > 0 && h > 0 && past.count > 1) {
      const auto [d1, d2] = differences(past, h, past.count);
      const double phi2 = (q * q - 1) / (2 * h) + 1, phi3 = phi2 / (2 * h) - 0.5;
      for (int k = 0; k < 3; ++k) w[k] += phi2 * d1[k] - phi3 * d2[k];
    }
    assign(run.x, Term{q * q, run.x}, Term{w[0], past.image[0]}, Term{w[1], past.image[1]}, Term{w[2], past.image[2]});
    run.add_noise(run.x, to * std::sqrt(std::max(0.0, 1 - q * q)));
    TRY(run.report(i, past.image[0]));
  }
  return {};
}

/// k-diffusion's sample_dpmpp_2s_ancestral, eta 1.
Result<void> dpmpp_2s_ancestral(Run& run) {
  Vector image = run.vector(), middle = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const double from = run.level(i).sigma;
    const auto [down, up] = ancestral(from, run.level(i + 1).sigma);
    TRY(run.denoise(run.x, run.level(i), image));
    if (down > 0) {
      const Level half = run.between(std::sqrt(from * down));
      assign(middle, Term{half.sigma / from, run.x}, Term{1 - half.sigma / from, image});
      TRY(run.denoise(middle, half, image));
    }
    assign(run.x, Term{down / from, run.x}, Term{1 - down / from, image});
    run.add_noise(run.x, up);
    TRY(run.report(i, image));
  }
  return {};
}

/// k-diffusion's sample_dpmpp_sde, eta 1, r 1/2.
Result<void> dpmpp_sde(Run& run) {
  Vector image = run.vector(), middle = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const double from = run.level(i).sigma, to = run.level(i + 1).sigma;
    TRY(run.denoise(run.x, run.level(i), image));
    if (to > 0) {
      const Level half = run.between(std::sqrt(from * to));
      const auto [down, up] = ancestral(from, half.sigma);
      assign(middle, Term{down / from, run.x}, Term{1 - down / from, image});
      run.add_noise(middle, up);
      TRY(run.denoise(middle, half, image));
    }
    const auto [down, up] = ancestral(from, to);
    assign(run.x, Term{down / from, run.x}, Term{1 - down / from, image});
    run.add_noise(run.x, up);
    TRY(run.report(i, image));
  }
  return {};
}

}  // namespace sfumato::sampling
