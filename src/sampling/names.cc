#include "sampling/names.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/strings.h"

namespace sfumato::sampling {
namespace {

template <class Kind>
struct Row {
  Kind kind;
  std::string_view name;                      ///< A1111's where it has one
  std::string_view diffusers;                 ///< class, or value in a scheduler config
  std::array<std::string_view, 4> aliases{};  ///< further names that normalize() does not make equal to `name`
};

using enum SamplerKind;
constexpr std::array kSamplers = {
    Row<SamplerKind>{kEuler, "Euler", "EulerDiscreteScheduler"},
    Row<SamplerKind>{kEulerAncestral, "Euler a", "EulerAncestralDiscreteScheduler", {"euler_ancestral"}},
    Row<SamplerKind>{kHeun, "Heun", "HeunDiscreteScheduler"},
    Row<SamplerKind>{kDpm2, "DPM2", "KDPM2DiscreteScheduler"},
    Row<SamplerKind>{kDpm2Ancestral, "DPM2 a", "KDPM2AncestralDiscreteScheduler", {"dpm_2_ancestral"}},
    Row<SamplerKind>{kDpmpp2M, "DPM++ 2M", "DPMSolverMultistepScheduler"},
    Row<SamplerKind>{kDpmpp2MSde, "DPM++ 2M SDE", ""},
    Row<SamplerKind>{kDpmppSde, "DPM++ SDE", "DPMSolverSDEScheduler"},
    Row<SamplerKind>{kDpmpp2SAncestral, "DPM++ 2S a", "", {"dpmpp_2s_ancestral"}},
    Row<SamplerKind>{kDpmpp3MSde, "DPM++ 3M SDE", ""},
    Row<SamplerKind>{kUniPc, "UniPC", "UniPCMultistepScheduler"},
    Row<SamplerKind>{kDdim, "DDIM", "DDIMScheduler"},
    Row<SamplerKind>{kDdpm, "DDPM", "DDPMScheduler"},
    Row<SamplerKind>{kPndm, "PLMS", "PNDMScheduler", {"pndm"}},
    Row<SamplerKind>{kLms, "LMS", "LMSDiscreteScheduler"},
    Row<SamplerKind>{kLcm, "LCM", "LCMScheduler"},
    Row<SamplerKind>{kTcd, "TCD", "TCDScheduler"},
};

using enum ScheduleKind;
constexpr std::array kSchedules = {
    Row<ScheduleKind>{kModel, "Automatic", "", {"model", "default"}},
    Row<ScheduleKind>{kLeading, "Leading", "leading"},
    Row<ScheduleKind>{kLinspace, "Normal", "linspace", {"uniform", "discrete"}},
    Row<ScheduleKind>{kTrailing, "Trailing", "trailing"},
    Row<ScheduleKind>{kKarras, "Karras", ""},
    Row<ScheduleKind>{kExponential, "Exponential", ""},
    Row<ScheduleKind>{kBeta, "Beta", ""},
    Row<ScheduleKind>{kSgmUniform, "SGM Uniform", ""},
    Row<ScheduleKind>{kSimple, "Simple", ""},
    Row<ScheduleKind>{kAlignYourSteps, "Align Your Steps", "", {"ays"}},
    Row<ScheduleKind>{kKlOptimal, "KL Optimal", ""},
};

constexpr std::array kPredictions = {
    Row<PredictionType>{PredictionType::kEpsilon, "epsilon", "", {"eps"}},
    Row<PredictionType>{PredictionType::kV, "v_prediction", "", {"v"}},
    Row<PredictionType>{PredictionType::kSample, "sample", "original_sample"},
};

constexpr std::array kRngs = {Row<RngKind>{RngKind::kCpu, "cpu", ""}, Row<RngKind>{RngKind::kPhilox, "philox", ""}};

/// "DPM++ 2S a", "dpm++2s_a" and "dpmpp_2s_a" become one: "dpm++2sa".
std::string normalize(std::string_view name) {
  std::string out;
  for (char c : lowercase_ascii(trim(name)))
    if (c != ' ' && c != '_' && c != '-') out += c;
  if (out.starts_with("dpmpp")) out.replace(3, 2, "++");
  return out;
}

/// The row that `normalized` names, or null.
template <class Rows>
auto find(const Rows& rows, std::string_view normalized) -> const typename Rows::value_type* {
  const auto is = [&](std::string_view name) { return !name.empty() && normalize(name) == normalized; };
  for (const auto& row : rows)
    if (is(row.name) || is(row.diffusers) || std::any_of(row.aliases.begin(), row.aliases.end(), is)) return &row;
  return nullptr;
}

template <class Rows, class Kind>
const typename Rows::value_type& row_of(const Rows& rows, Kind kind) {
  const auto& row = rows[static_cast<size_t>(kind)];
  CHECK(row.kind == kind, "table in the order of the enum");
  return row;
}

template <class Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) names.push_back(row.name);
  return names;
}

/// The schedule that ends `normalized`, and what is before it.
struct Split {
  std::string head;
  ScheduleKind schedule;
};
std::optional<Split> split_schedule(const std::string& normalized) {
  for (const auto& row : kSchedules) {
    const std::string suffix = normalize(row.name);
    if (normalized.size() > suffix.size() && normalized.ends_with(suffix))
      return Split{normalized.substr(0, normalized.size() - suffix.size()), row.kind};
  }
  return std::nullopt;
}

}  // namespace

Result<SamplerChoice> parse_sampler(std::string_view name) {
  const std::string normalized = normalize(name);
  if (const auto* row = find(kSamplers, normalized)) return SamplerChoice{row->kind, std::nullopt};
  if (const auto split = split_schedule(normalized))
    if (const auto* row = find(kSamplers, split->head)) return SamplerChoice{row->kind, split->schedule};
  return usage_error(str("[sampling.sampler] expected one of ", join(sampler_names(), ", "), "; got \"", name, "\""));
}

Result<ScheduleKind> parse_schedule(std::string_view name) {
  if (const auto* row = find(kSchedules, normalize(name))) return row->kind;
  return usage_error(str("[sampling.schedule] expected one of ", join(schedule_names(), ", "), "; got \"", name, "\""));
}

Result<PredictionType> parse_prediction(std::string_view name) {
  if (const auto* row = find(kPredictions, normalize(name))) return row->kind;
  return usage_error(
      str("[sampling.prediction] expected one of ", join(names_of(kPredictions), ", "), "; got \"", name, "\""));
}

Result<RngKind> parse_rng(std::string_view name) {
  if (const auto* row = find(kRngs, normalize(name))) return row->kind;
  return usage_error(str("[sampling.rng] expected one of ", join(names_of(kRngs), ", "), "; got \"", name, "\""));
}

std::string_view sampler_name(SamplerKind kind) {
  return row_of(kSamplers, kind).name;
}
std::string_view schedule_name(ScheduleKind kind) {
  return row_of(kSchedules, kind).name;
}
std::string_view prediction_name(PredictionType type) {
  return row_of(kPredictions, type).name;
}
std::string_view rng_name(RngKind kind) {
  return row_of(kRngs, kind).name;
}
std::vector<std::string_view> sampler_names() {
  return names_of(kSamplers);
}
std::vector<std::string_view> schedule_names() {
  return names_of(kSchedules);
}

std::optional<SamplerKind> sampler_of_class(std::string_view diffusers_class) {
  for (const auto& row : kSamplers)
    if (!row.diffusers.empty() && row.diffusers == diffusers_class) return row.kind;
  return std::nullopt;
}

}  // namespace sfumato::sampling
