// The samplers of Karras et al. 2022 and their relatives in k-diffusion: alpha is 1 throughout.
#include <array>
#include <deque>

#include "sampling/run.h"

namespace sfumato::sampling {
namespace {

/// x moves along the line from `from` through the image estimate down to sigma `to`.
void euler_step(std::span<float> out, std::span<const float> x, std::span<const float> image, double from, double to) {
  assign(out, Term{to / from, x}, Term{1 - to / from, image});
}

}  // namespace

/// EulerDiscreteScheduler.
Result<void> euler(Run& run) {
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    TRY(run.denoise(run.x, run.level(i), image));
    euler_step(run.x, run.x, image, run.level(i).sigma, run.level(i + 1).sigma);
    TRY(run.report(i, image));
  }
  return {};
}

/// EulerAncestralDiscreteScheduler.
Result<void> euler_ancestral(Run& run) {
  Vector image = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const auto [down, up] = ancestral(run.level(i).sigma, run.level(i + 1).sigma);
    TRY(run.denoise(run.x, run.level(i), image));
    euler_step(run.x, run.x, image, run.level(i).sigma, down);
    run.add_noise(run.x, up);
    TRY(run.report(i, image));
  }
  return {};
}

/// HeunDiscreteScheduler.
Result<void> heun(Run& run) {
  Vector image = run.vector(), image2 = run.vector(), x2 = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const double from = run.level(i).sigma, to = run.level(i + 1).sigma;
    TRY(run.denoise(run.x, run.level(i), image));
    euler_step(x2, run.x, image, from, to);
    if (to > 0) {
      TRY(run.denoise(x2, run.level(i + 1), image2));
      const double half = (to - from) / 2;  // x + half * ((x - image) / from + (x2 - image2) / to)
      assign(run.x, Term{1 + half / from, run.x}, Term{-half / from, image}, Term{half / to, x2},
             Term{-half / to, image2});
    } else {
      assign(run.x, Term{1, x2});
    }
    TRY(run.report(i, image));
  }
  return {};
}

/// One midpoint step from level i down to sigma `to`; the midpoint is geometric.
static Result<void> midpoint_step(Run& run, int i, double to, Vector& image, Vector& middle) {
  const double from = run.level(i).sigma;
  TRY(run.denoise(run.x, run.level(i), image));
  if (to == 0) {
    euler_step(run.x, run.x, image, from, to);
    return {};
  }
  const Level half = run.between(std::sqrt(from * to));
  euler_step(middle, run.x, image, from, half.sigma);
  TRY(run.denoise(middle, half, image));
  const double slope = (to - from) / half.sigma;
  assign(run.x, Term{1, run.x}, Term{slope, middle}, Term{-slope, image});
  return {};
}

/// KDPM2DiscreteScheduler.
Result<void> dpm2(Run& run) {
  Vector image = run.vector(), middle = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    TRY(midpoint_step(run, i, run.level(i + 1).sigma, image, middle));
    TRY(run.report(i, image));
  }
  return {};
}

/// KDPM2AncestralDiscreteScheduler.
Result<void> dpm2_ancestral(Run& run) {
  Vector image = run.vector(), middle = run.vector();
  for (int i = run.begin(); i < run.steps(); ++i) {
    const auto [down, up] = ancestral(run.level(i).sigma, run.level(i + 1).sigma);
    TRY(midpoint_step(run, i, down, image, middle));
    run.add_noise(run.x, up);
    TRY(run.report(i, image));
  }
  return {};
}

/// The integral over step i of the Lagrange polynomial that is 1 at level i - j and 0 at the other `order` newest
/// levels.
static double lms_weight(const Run& run, int i, int j, int order) {
  const double from = run.level(i).sigma, to = run.level(i + 1).sigma;
  double sum = 0;
  for (const double node : {-1 / std::sqrt(3.0), 1 / std::sqrt(3.0)}) {  // Gauss-Legendre: exact to the third degree
    const double tau = (from + to) / 2 + node * (to - from) / 2;
    double product = 1;
    for (int k = 0; k < order; ++k)
      if (k != j) product *= (tau - run.level(i - k).sigma) / (run.level(i - j).sigma - run.level(i - k).sigma);
    sum += product;
  }
  return sum * (to - from) / 2;
}

/// LMSDiscreteScheduler: Adams-Bashforth of order 4 over the uneven steps.
Result<void> lms(Run& run) {
  constexpr int kOrder = 4;
  Vector image = run.vector();
  std::deque<Vector> slopes;  // newest first
  for (int i = run.begin(); i < run.steps(); ++i) {
    const double sigma = run.level(i).sigma;
    if (i > run.begin() && !(sigma < run.level(i - 1).sigma))
      slopes.clear();  // equal levels: nothing to extrapolate from
    TRY(run.denoise(run.x, run.level(i), image));
    slopes.emplace_front(run.vector());
    assign(slopes.front(), Term{1 / sigma, run.x}, Term{-1 / sigma, image});
    if (slopes.size() > kOrder) slopes.pop_back();
    const int order = static_cast<int>(slopes.size());
    for (int j = 0; j < order; ++j) assign(run.x, Term{1, run.x}, Term{lms_weight(run, i, j, order), slopes[j]});
    TRY(run.report(i, image));
  }
  return {};
}

}  // namespace sfumato::sampling
