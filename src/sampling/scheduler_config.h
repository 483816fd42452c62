#pragma once
// scheduler_config.json: what the model was trained with, and how its authors would sample it.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sampling/names.h"

namespace sfumato::sampling {

enum class BetaSchedule { kLinear, kScaledLinear, kSquaredCos };
enum class Spacing { kLeading, kLinspace, kTrailing };
enum class Variance { kSmall, kLarge };

/// Field names are the keys of diffusers' files. An absent optional means the default of the chosen sampler, as when
/// diffusers makes one scheduler from another's config. The defaults below are Stable Diffusion 1.5's.
struct SchedulerConfig {
  std::optional<SamplerKind> sampler = SamplerKind::kPndm;  ///< from _class_name and algorithm_type; absent: unknown
  std::string unsupported;  ///< why the file's own sampler cannot be run as the file says; empty: it can

  int num_train_timesteps = 1000;
  BetaSchedule beta_schedule = BetaSchedule::kScaledLinear;
  double beta_start = 0.00085, beta_end = 0.012;
  std::vector<double> trained_betas;  ///< when given, in place of the three above
  bool rescale_betas_zero_snr = false;
  PredictionType prediction_type = PredictionType::kEpsilon;

  std::optional<Spacing> timestep_spacing;
  int steps_offset = 1;
  ScheduleKind sigmas = ScheduleKind::kModel;  ///< kKarras, kExponential or kBeta from use_*_sigmas; else kModel
  std::optional<double> sigma_min, sigma_max;  ///< ends of those three
  bool log_linear = false;                     ///< interpolation_type, read by Euler
  bool final_sigma_min = false;                ///< final_sigmas_type "sigma_min": stop at the smallest sigma, not at 0
  std::optional<bool> set_alpha_to_one;        ///< the same choice for DDIM, PNDM: absent is true, false

  int solver_order = 2;                                                  ///< 1..3: DPM++ 2M and UniPC
  bool solver_heun = false;                                              ///< solver_type "heun": DPM++
  bool solver_bh1 = false;                                               ///< solver_type "bh1": UniPC
  bool lower_order_final = true;                                         ///< DPM++ 2M (below 15 steps) and UniPC
  bool euler_at_final = false;                                           ///< DPM++ 2M
  std::vector<int> disable_corrector;                                    ///< UniPC: steps whose result is not corrected
  double lambda_min_clipped = -std::numeric_limits<double>::infinity();  ///< DPM++: leaves out noisier timesteps
  bool skip_prk_steps = true;                                            ///< PNDM: false starts with Runge-Kutta steps
  Variance variance_type = Variance::kSmall;                             ///< DDPM
  int original_inference_steps = 50;                                     ///< LCM, TCD
  double timestep_scaling = 10;                                          ///< LCM

  // Not in the file.
  std::optional<double> eta;  ///< 0..1, stochasticity: DDIM (default 0), TCD (default 0.3)
  bool sdxl = false;          ///< which align-your-steps table

  std::vector<std::string> notes;  ///< keys that were ignored, one line each

  /// The sampler to use when nobody names one, or the error that says why there is none.
  Result<SamplerKind> own_sampler() const;
};

/// Parses the text of a scheduler_config.json. Wrong types and impossible values are errors; keys that are not known
/// are noted; settings that would change the picture but are not supported stand in the way of own_sampler() only.
Result<SchedulerConfig> parse_scheduler_config(std::string_view json);

}  // namespace sfumato::sampling
