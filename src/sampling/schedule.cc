#include "sampling/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/strings.h"
#include "sampling/beta_quantile.h"

namespace sfumato::sampling {
namespace {

/// How a sampler's reference implementation builds its levels.
struct Rules {
  SamplerKind sampler;
  bool preserving;    ///< alpha^2 + sigma^2 = 1, else alpha = 1
  Spacing spacing;    ///< where the config has none
  bool whole;         ///< timesteps are whole numbers
  bool one_more;      ///< spaces steps + 1 timesteps and leaves the last out
  bool full_range;    ///< Karras and kin span the model's range, else that of the chosen timesteps
  bool round_karras;  ///< Karras timesteps are rounded
  bool exact_end;     ///< zero terminal SNR means an alpha of 0, else sigma 4096
  bool final_sigma;   ///< heeds final_sigmas_type
};

constexpr Rules exploding(SamplerKind sampler, bool round_karras = false, bool full_range = false) {
  return {sampler,      false, Spacing::kLinspace,
          false,        false, full_range,
          round_karras, false, sampler == SamplerKind::kEuler};
}
constexpr Rules multistep(SamplerKind sampler) {
  return {sampler, true, Spacing::kLinspace, true, true, true, true, false, true};
}
constexpr Rules preserving(SamplerKind sampler, bool exact_end) {
  return {sampler, true, Spacing::kLeading, true, false, true, true, exact_end, false};
}

constexpr std::array kRules = {
    exploding(SamplerKind::kEuler),
    exploding(SamplerKind::kEulerAncestral),
    exploding(SamplerKind::kHeun),
    exploding(SamplerKind::kDpm2, true),
    exploding(SamplerKind::kDpm2Ancestral, true),
    multistep(SamplerKind::kDpmpp2M),
    multistep(SamplerKind::kDpmpp2MSde),
    exploding(SamplerKind::kDpmppSde),
    exploding(SamplerKind::kDpmpp2SAncestral, false, true),
    exploding(SamplerKind::kDpmpp3MSde, false, true),
    multistep(SamplerKind::kUniPc),
    preserving(SamplerKind::kDdim, true),
    preserving(SamplerKind::kDdpm, true),
    preserving(SamplerKind::kPndm, false),
    exploding(SamplerKind::kLms),
    preserving(SamplerKind::kLcm, true),
    preserving(SamplerKind::kTcd, true),
};

const Rules& rules_of(SamplerKind sampler) {
  const Rules& rules = kRules[static_cast<size_t>(sampler)];
  CHECK(rules.sampler == sampler, "table in the order of the enum");
  return rules;
}

using Values = std::vector<double>;

/// 0..1 in n values; 0 when there is one.
double ramp(int i, int n) {
  return n > 1 ? i * (1.0 / (n - 1)) : 0.0;
}

template <class Of>
Values values(int n, Of of) {
  Values out(n);
  for (int i = 0; i < n; ++i) out[i] = of(i);
  return out;
}

// --- timesteps, noisiest first ---

/// From `top` down to 0 in n values, both ends included; a single value is 0.
Values linspace_timesteps(int top, int n) {
  const double stride = n > 1 ? static_cast<double>(top) / (n - 1) : 0;  // rounded as numpy.linspace, for equal ties
  return values(n, [&](int i) { return i == 0 && n > 1 ? top : (n - 1 - i) * stride; });
}

/// Of `count` timesteps in n strides of whole length, from `skip` strides up; the offset shrinks where it would not
/// fit.
Values leading_timesteps(int count, int n, int skip, int offset) {
  const int stride = std::max(1, count / (n + skip)), highest = (n - 1 + skip) * stride;
  offset = std::min(offset, count - 1 - highest);
  return values(n, [&](int i) { return static_cast<double>(highest - i * stride + offset); });
}

/// From count - 1 down in strides of count / n, to the nearest. The stride is rounded as numpy.arange does it, so that
/// ties fall alike.
Values trailing_timesteps(int count, int n) {
  const double stride = count - (count - static_cast<double>(count) / n);
  return values(n, [&](int i) { return std::nearbyint(count - i * stride) - 1; });
}

/// The distillation's timesteps, thinned out (Luo et al. 2023).
Result<Values> distilled_timesteps(const SchedulerConfig& c, int n) {
  const int trained = c.original_inference_steps, stride = c.num_train_timesteps / trained;
  if (n > trained)
    return usage_error(str("[sampling.schedule] expected at most ", trained,
                           " steps (original_inference_steps) of this sampler, got ", n));
  const double skip = static_cast<double>(trained) / n;
  return values(n, [&](int i) { return (trained - std::floor(i * skip)) * stride - 1.0; });
}

/// How many of the timesteps are no noisier than lambda_min_clipped allows.
int usable_timesteps(const NoiseTable& table, double lambda_min) {
  int count = table.size();
  while (count > 2 && -std::log(table.sigma(count - 1)) < lambda_min) --count;
  return count;
}

Values spaced_timesteps(const NoiseTable& table, const SchedulerConfig& c, const Rules& rules, Spacing spacing, int n) {
  const int count = rules.one_more ? usable_timesteps(table, c.lambda_min_clipped) : table.size();
  Values t;
  switch (spacing) {
    case Spacing::kLeading:
      t = leading_timesteps(count, n, rules.one_more ? 1 : 0, c.steps_offset);
      break;
    case Spacing::kLinspace:
      t = linspace_timesteps(count - 1, rules.one_more ? n + 1 : n);
      break;
    case Spacing::kTrailing:
      t = trailing_timesteps(count, n);
      break;
  }
  t.resize(n);
  for (double& v : t) v = std::clamp(rules.whole ? std::nearbyint(v) : v, 0.0, count - 1.0);
  return t;
}

// --- sigmas, noisiest first ---

/// The published ten-step tables, taken in the logarithm.
Values align_your_steps(bool sdxl, int n) {
  constexpr std::array<double, 11> kSd15 = {14.615, 6.475, 3.861, 2.697, 1.886, 1.396,
                                            0.963,  0.652, 0.399, 0.152, 0.029};
  constexpr std::array<double, 11> kSdxl = {14.615, 6.315, 3.771, 2.181, 1.342, 0.862,
                                            0.555,  0.380, 0.234, 0.113, 0.029};
  const auto& table = sdxl ? kSdxl : kSd15;
  return values(n, [&](int i) {
    const double at = 10.0 * i / n;
    const int low = std::min(static_cast<int>(at), 9);
    return std::exp(std::lerp(std::log(table[low]), std::log(table[low + 1]), at - low));
  });
}

/// n sigmas from `high` to `low`.
Values spread_sigmas(ScheduleKind kind, double low, double high, int n) {
  switch (kind) {
    case ScheduleKind::kKarras: {
      constexpr double kRho = 7;
      const double from = std::pow(high, 1 / kRho), to = std::pow(low, 1 / kRho);
      return values(n, [&](int i) { return std::pow(from + ramp(i, n) * (to - from), kRho); });
    }
    case ScheduleKind::kExponential:
      return values(n, [&](int i) { return std::exp(std::lerp(std::log(high), std::log(low), ramp(i, n))); });
    case ScheduleKind::kBeta:
      return values(n, [&](int i) { return low + beta_quantile(1 - ramp(i, n), 0.6) * (high - low); });
    case ScheduleKind::kKlOptimal:
      return values(n, [&](int i) { return std::tan(std::lerp(std::atan(high), std::atan(low), ramp(i, n))); });
    default:
      CHECK(false, "a schedule of sigmas");
  }
}

/// What the network is told at a sigma that is not a training timestep.
double timestep_of(const NoiseTable& table, const SchedulerConfig& c, const Rules& rules, ScheduleKind kind,
                   double sigma) {
  const double t = table.timestep(sigma);
  if (kind == ScheduleKind::kExponential || kind == ScheduleKind::kBeta) return rules.whole ? std::floor(t) : t;
  if (kind != ScheduleKind::kKarras) return rules.whole ? std::nearbyint(t) : t;
  const bool dpmpp = rules.sampler == SamplerKind::kDpmpp2M || rules.sampler == SamplerKind::kDpmpp2MSde;
  if (dpmpp && c.beta_schedule == BetaSchedule::kSquaredCos) return std::floor(t);
  return rules.round_karras ? std::nearbyint(t) : t;
}

Level level_of(const Rules& rules, double sigma, double timestep) {
  const double alpha = rules.preserving ? 1 / std::sqrt(1 + sigma * sigma) : 1;
  return {alpha, rules.preserving && std::isinf(sigma) ? 1 : sigma * alpha, static_cast<float>(timestep)};
}

Level last_level(const Rules& rules, const SchedulerConfig& c, const NoiseTable& table) {
  if (rules.final_sigma && c.final_sigma_min) return level_of(rules, table.min_sigma(), 0);
  const bool to_one = c.set_alpha_to_one.value_or(rules.sampler != SamplerKind::kPndm);
  const bool heeds_it = rules.sampler == SamplerKind::kDdim || rules.sampler == SamplerKind::kPndm;
  if (rules.sampler == SamplerKind::kTcd || (heeds_it && !to_one)) return table.at(0);
  return {};
}

bool is_spread(ScheduleKind kind) {
  return kind == ScheduleKind::kKarras || kind == ScheduleKind::kExponential || kind == ScheduleKind::kBeta ||
         kind == ScheduleKind::kKlOptimal;
}

Spacing spacing_of(ScheduleKind kind, const SchedulerConfig& c, const Rules& rules) {
  switch (kind) {
    case ScheduleKind::kLeading:
      return Spacing::kLeading;
    case ScheduleKind::kTrailing:
      return Spacing::kTrailing;
    case ScheduleKind::kLinspace:
    case ScheduleKind::kSgmUniform:
    case ScheduleKind::kSimple:
      return Spacing::kLinspace;
    default:
      return c.timestep_spacing.value_or(rules.spacing);
  }
}

Result<Values> timesteps_of(const Schedule& s, const Rules& rules, ScheduleKind kind, Spacing spacing, int n) {
  const int count = s.table.size();
  const bool distilled = rules.sampler == SamplerKind::kLcm || rules.sampler == SamplerKind::kTcd;
  if (distilled && kind == ScheduleKind::kModel) return distilled_timesteps(s.config, n);
  if (kind == ScheduleKind::kSimple)
    return values(n, [&](int i) { return count - 1 - std::floor(static_cast<double>(i) * count / n); });
  Rules grid = rules;
  if (kind == ScheduleKind::kSgmUniform) grid.one_more = true;
  return spaced_timesteps(s.table, s.config, grid, spacing, n);
}

}  // namespace

std::vector<float> Schedule::timesteps() const {
  std::vector<float> out;
  for (int i = 0; i < steps(); ++i) out.push_back(levels[i].timestep);
  return out;
}

std::vector<float> Schedule::sigmas() const {
  std::vector<float> out;
  for (const Level& level : levels) out.push_back(static_cast<float>(level.ratio()));
  return out;
}

const Level& Schedule::start() const {
  // PNDM passes its second level twice and image to image skips passes, not levels: see sampler_pndm.cc.
  return levels[sampler == SamplerKind::kPndm && begin > 0 ? begin - (begin > 1) : begin];
}

Result<Schedule> make_schedule(const SchedulerConfig& config, SamplerKind sampler, ScheduleKind kind, int steps) {
  if (steps < 1 || steps > config.num_train_timesteps)
    return usage_error(str("[sampling.schedule] expected 1..", config.num_train_timesteps, " steps, got ", steps));
  const Rules& rules = rules_of(sampler);
  if (kind == ScheduleKind::kModel) kind = config.sigmas;
  const bool by_sigma = is_spread(kind) || kind == ScheduleKind::kAlignYourSteps;
  const bool exact_end = rules.exact_end && !by_sigma && config.prediction_type != PredictionType::kEpsilon;
  Schedule s;
  s.sampler = sampler;
  s.config = config;
  s.table = NoiseTable(config, !exact_end);
  if (!s.table.usable())
    return input_error("[sampling.schedule] expected betas with which noise grows, got a flat table");

  const Spacing spacing = spacing_of(kind, config, rules);
  // Schedules of sigmas, too, begin with timesteps: some samplers spread only between the first and the last of them.
  Values t = TRY(timesteps_of(s, rules, by_sigma ? ScheduleKind::kLinspace : kind, spacing, steps));
  Values sigmas;
  for (double v : t) sigmas.push_back(s.table.sigma(v));
  if (config.log_linear && sampler == SamplerKind::kEuler)  // evenly in log sigma, whatever the timesteps
    sigmas = spread_sigmas(ScheduleKind::kExponential, s.table.min_sigma(), s.table.max_sigma(), steps + 1);
  if (by_sigma) {
    const double low = config.sigma_min.value_or(rules.full_range ? s.table.min_sigma() : sigmas.back());
    const double high = config.sigma_max.value_or(rules.full_range ? s.table.max_sigma() : sigmas.front());
    sigmas = kind == ScheduleKind::kAlignYourSteps ? align_your_steps(config.sdxl, steps)
                                                   : spread_sigmas(kind, low, high, steps);
    for (int i = 0; i < steps; ++i) t[i] = timestep_of(s.table, config, rules, kind, sigmas[i]);
  }
  for (int i = 0; i < steps; ++i) s.levels.push_back(level_of(rules, sigmas[i], t[i]));
  const bool ends_itself = std::ssize(sigmas) > steps;
  s.levels.push_back(ends_itself ? level_of(rules, sigmas.back(), 0) : last_level(rules, config, s.table));

  const double top = s.levels.front().sigma;
  if (!rules.preserving) s.init_noise_sigma = spacing == Spacing::kLeading ? std::sqrt(top * top + 1) : top;
  if (t.front() < config.num_train_timesteps / 2)
    s.notes.push_back(str("[sampling.schedule] the first of ", steps, " steps is at timestep ", t.front(),
                          ", where little noise is left: use --scheduler trailing for so few steps"));
  return s;
}

int steps_to_run(int steps, float strength) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, strength).ptr;
  double decimal = 0;
  std::from_chars(digits, end, decimal);
  return std::clamp(static_cast<int>(steps * decimal), 0, steps);
}

Result<void> truncate(Schedule& schedule, float strength) {
  if (!(strength >= 0 && strength <= 1)) return usage_error(str("[sampling.strength] expected 0..1, got ", strength));
  const int count = steps_to_run(schedule.steps(), strength);
  if (count == 0)
    return usage_error(str("[sampling.strength] expected at least one step to run, got ", schedule.steps(), " steps * ",
                           strength, ", rounded down to 0: raise --strength or --steps"));
  schedule.begin = schedule.steps() - count;
  return {};
}

}  // namespace sfumato::sampling
