#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "sampling/schedule.h"

namespace sfumato::sampling {
namespace {

// diffusers keeps these tables in single precision, and the rounding of 1 - beta moves the smallest sigma by 1.3e-5 of
// itself. To agree with it to 1e-6, betas and alphas are rounded here where it rounds them; sums and products are
// double.

std::vector<float> evenly(double from, double to, int count) {
  std::vector<float> out(count);
  const float first = static_cast<float>(from), last = static_cast<float>(to);
  const float step = (last - first) / static_cast<float>(count - 1);
  for (int i = 0; i < count; ++i)  // from the nearer end, as torch.linspace
    out[i] = static_cast<float>(i < count / 2 ? double{first} + double{step} * i
                                              : double{last} - double{step} * (count - 1 - i));
  return out;
}

/// The cosine schedule of Nichol and Dhariwal 2021.
std::vector<float> squared_cosine(int count) {
  const auto alpha_bar = [](double t) {
    const double c = std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2);
    return c * c;
  };
  std::vector<float> betas(count);
  for (int i = 0; i < count; ++i)
    betas[i] = static_cast<float>(
        std::min(1 - alpha_bar((i + 1.0) / count) / alpha_bar(i / static_cast<double>(count)), 0.999));
  return betas;
}

std::vector<float> make_betas(const SchedulerConfig& c) {
  if (!c.trained_betas.empty()) return {c.trained_betas.begin(), c.trained_betas.end()};
  switch (c.beta_schedule) {
    case BetaSchedule::kLinear:
      return evenly(c.beta_start, c.beta_end, c.num_train_timesteps);
    case BetaSchedule::kSquaredCos:
      return squared_cosine(c.num_train_timesteps);
    case BetaSchedule::kScaledLinear:
      break;
  }
  auto betas = evenly(std::sqrt(c.beta_start), std::sqrt(c.beta_end), c.num_train_timesteps);
  for (float& b : betas) b *= b;
  return betas;
}

std::vector<float> cumulative_alphas(const std::vector<float>& betas) {
  std::vector<float> out;
  double product = 1;
  for (float b : betas) out.push_back(static_cast<float>(product *= double{1.0f - b}));
  return out;
}

/// Shifts and scales sqrt(alpha_bar) so that the last is 0 and the first stays (Lin et al. 2023, algorithm 1).
std::vector<float> zero_terminal_snr(const std::vector<float>& betas) {
  std::vector<float> roots = cumulative_alphas(betas);
  for (float& r : roots) r = std::sqrt(r);
  const float first = roots.front(), last = roots.back(), scale = first / (first - last);
  for (float& r : roots) r = (r - last) * scale;
  std::vector<float> out;
  for (size_t i = 0; i < roots.size(); ++i) {
    const float alpha_bar = roots[i] * roots[i];
    out.push_back(1.0f - (i == 0 ? alpha_bar : alpha_bar / (roots[i - 1] * roots[i - 1])));
  }
  return out;
}

}  // namespace

NoiseTable::NoiseTable(const SchedulerConfig& config, bool finite) {
  auto betas = make_betas(config);
  if (config.rescale_betas_zero_snr) betas = zero_terminal_snr(betas);
  alpha_bars_ = cumulative_alphas(betas);
  if (config.rescale_betas_zero_snr && finite) alpha_bars_.back() = 0x1p-24f;
  for (float a : alpha_bars_) sigmas_.push_back(std::sqrt((1.0f - a) / a));
}

bool NoiseTable::usable() const {
  return sigmas_.front() > 0 && std::isfinite(sigmas_[sigmas_.size() - 2]) &&
         std::adjacent_find(sigmas_.begin(), sigmas_.end(), [](float a, float b) { return !(a < b); }) == sigmas_.end();
}

Level NoiseTable::at(int timestep) const {
  CHECK(timestep >= 0 && timestep < size(), "a training timestep");
  const double alpha_bar = alpha_bars_[timestep];
  return {std::sqrt(alpha_bar), std::sqrt(1 - alpha_bar), static_cast<float>(timestep)};
}

double NoiseTable::sigma(double timestep) const {
  CHECK(timestep >= 0 && timestep <= size() - 1, "a training timestep");
  const int low = std::min(static_cast<int>(timestep), size() - 2);
  const double weight = timestep - low;
  if (weight == 0) return sigmas_[low];  // also where the next is infinite
  if (weight == 1) return sigmas_[low + 1];
  return sigmas_[low] + weight * (double{sigmas_[low + 1]} - sigmas_[low]);
}

double NoiseTable::timestep(double sigma) const {
  const auto above = std::upper_bound(sigmas_.begin(), sigmas_.end(), sigma, [](double s, float e) { return s < e; });
  const int low = std::clamp(static_cast<int>(above - sigmas_.begin()) - 1, 0, size() - 2);
  const double from = std::log(double{sigmas_[low]}), to = std::log(double{sigmas_[low + 1]});
  return low + std::clamp((std::log(std::max(sigma, 1e-10)) - from) / (to - from), 0.0, 1.0);
}

}  // namespace sfumato::sampling
