#pragma once
// Samplers, schedules, prediction types and generators, and every name by which people call them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sfumato::sampling {

enum class SamplerKind {
  kEuler,
  kEulerAncestral,
  kHeun,
  kDpm2,
  kDpm2Ancestral,
  kDpmpp2M,
  kDpmpp2MSde,
  kDpmppSde,
  kDpmpp2SAncestral,
  kDpmpp3MSde,
  kUniPc,
  kDdim,
  kDdpm,
  kPndm,
  kLms,
  kLcm,
  kTcd,
};

/// How the steps are spread over the noise levels.
enum class ScheduleKind {
  kModel,           ///< as scheduler_config.json says
  kLeading,         ///< the three spacings of Lin et al. 2023, table 2
  kLinspace,        ///< A1111's "Normal" and "Uniform", sd.cpp's "discrete"
  kTrailing,        ///<
  kKarras,          ///< Karras et al. 2022, rho 7
  kExponential,     ///< equal steps of log sigma
  kBeta,            ///< Beta(0.6, 0.6) quantiles (Lee et al. 2024)
  kSgmUniform,      ///< linspace over steps + 1, the last left out
  kSimple,          ///< every (1000/steps)-th timestep down from the top
  kAlignYourSteps,  ///< Sabour et al. 2024: tables for SD1.5 and SDXL
  kKlOptimal,       ///< equal steps of atan(sigma)
};

/// What the network's output stands for.
enum class PredictionType { kEpsilon, kV, kSample };

enum class RngKind {
  kCpu,     ///< torch.randn(generator=torch.Generator("cpu")), bit for bit
  kPhilox,  ///< torch.randn(device="cuda"), to the last bits of the GPU's log and sin
};

struct SamplerChoice {
  SamplerKind sampler;
  std::optional<ScheduleKind> schedule;  ///< from a suffix, as in "DPM++ 2M Karras"
};

/// A1111's ("DPM++ 2M Karras"), sd.cpp's ("dpm++2m") or ComfyUI's ("dpmpp_2m") name, or a diffusers class name; case,
/// spaces, '_' and '-' do not count. An unknown name is a usage error that lists the known ones.
Result<SamplerChoice> parse_sampler(std::string_view name);
Result<ScheduleKind> parse_schedule(std::string_view name);
/// "epsilon" ("eps"), "v_prediction" ("v") or "sample".
Result<PredictionType> parse_prediction(std::string_view name);
/// "cpu" or "philox".
Result<RngKind> parse_rng(std::string_view name);

/// A1111's name: what is printed and written into PNGs.
std::string_view sampler_name(SamplerKind kind);
std::string_view schedule_name(ScheduleKind kind);
std::string_view prediction_name(PredictionType type);
std::string_view rng_name(RngKind kind);

/// All of them, in the order of the enums.
std::vector<std::string_view> sampler_names();
std::vector<std::string_view> schedule_names();

/// The sampler of a diffusers class; nothing for a class that is not known here.
std::optional<SamplerKind> sampler_of_class(std::string_view diffusers_class);

}  // namespace sfumato::sampling
