#include "sampling/scheduler_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/strings.h"

namespace sfumato::sampling {
namespace {

using Json = nlohmann::json;

constexpr int kMaxTrainTimesteps = 100000;

Error fault(std::string_view key, std::string_view expected, const Json& got) {
  return input_error(str("[sampling.scheduler_config] expected ", key, " to be ", expected, ", got ",
                         got.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80)));
}

/// Reads keys one by one and remembers which were looked at.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  /// The key's value unless it is absent or null.
  const Json* find(const char* key) {
    seen_.insert(key);
    const auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  Result<void> read(const char* key, bool& out) {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_boolean()) return fault(key, "true or false", *value);
    out = value->get<bool>();
    return {};
  }
  Result<void> read(const char* key, std::optional<bool>& out) {
    bool value = false;
    TRY(read(key, value));
    if (find(key)) out = value;
    return {};
  }
  Result<void> read(const char* key, int& out, int low, int high) {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_number_integer() || *value < low || *value > high)
      return fault(key, str("a whole number of ", low, "..", high), *value);
    out = value->get<int>();
    return {};
  }
  Result<void> read(const char* key, double& out) {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_number()) return fault(key, "a number", *value);
    out = value->get<double>();
    return {};
  }
  Result<void> read(const char* key, std::optional<double>& out) {
    double value = 0;
    TRY(read(key, value));
    if (find(key)) out = value;
    return {};
  }
  Result<void> read(const char* key, std::string& out) {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_string()) return fault(key, "a string", *value);
    out = value->get<std::string>();
    return {};
  }
  /// One of `names`; `out` becomes the value beside it.
  template <class T, class Out>
  Result<void> read(const char* key, Out& out, std::initializer_list<std::pair<std::string_view, T>> names) {
    const Json* value = find(key);
    if (!value) return {};
    std::vector<std::string_view> known;
    for (const auto& [name, meaning] : names) {
      if (value->is_string() && value->get_ref<const std::string&>() == name) {
        out = meaning;
        return {};
      }
      known.push_back(name);
    }
    return fault(key, str("one of ", join(known, ", ")), *value);
  }
  /// A list of numbers, each of which must pass `ok`.
  template <class T, class Ok>
  Result<void> read_list(const char* key, std::vector<T>& out, std::string_view expected, Ok ok) {
    const Json* value = find(key);
    if (!value) return {};
    if (!value->is_array()) return fault(key, expected, *value);
    for (const Json& item : *value) {
      if (!item.is_number() || !ok(item)) return fault(key, expected, item);
      out.push_back(item.get<T>());
    }
    return {};
  }
  /// A setting that is not supported: any value but `harmless` is noted in `unsupported`.
  void refuse_other_than(const char* key, const Json& harmless, std::string& unsupported) {
    const Json* value = find(key);
    if (value && *value != harmless) unsupported = fault(key, harmless.dump(), *value).message;
  }
  /// Keys that change nothing here.
  void ignore(std::initializer_list<const char*> keys) { seen_.insert(keys.begin(), keys.end()); }

  std::vector<std::string> unknown() const {
    std::vector<std::string> keys;
    for (const auto& item : object_.items())
      if (!seen_.contains(item.key()) && !item.key().starts_with("_")) keys.push_back(item.key());
    return keys;
  }

 private:
  const Json& object_;
  std::set<std::string> seen_;
};

Result<void> read_betas(Reader& in, SchedulerConfig& c) {
  TRY(in.read("num_train_timesteps", c.num_train_timesteps, 2, kMaxTrainTimesteps));
  TRY(in.read("beta_start", c.beta_start));
  TRY(in.read("beta_end", c.beta_end));
  TRY(in.read("beta_schedule", c.beta_schedule,
              {std::pair{std::string_view("linear"), BetaSchedule::kLinear},
               {"scaled_linear", BetaSchedule::kScaledLinear},
               {"squaredcos_cap_v2", BetaSchedule::kSquaredCos}}));
  TRY(in.read_list("trained_betas", c.trained_betas, "a list of numbers above 0 and below 1",
                   [](const Json& item) { return item.get<double>() > 0 && item.get<double>() < 1; }));
  TRY(in.read("rescale_betas_zero_snr", c.rescale_betas_zero_snr));
  if (!(c.beta_start > 0 && c.beta_start <= c.beta_end && c.beta_end < 1))
    return fault("beta_start <= beta_end", "above 0 and below 1", Json{c.beta_start, c.beta_end});
  const size_t betas = c.trained_betas.size();
  if (betas != 0 && betas != static_cast<size_t>(c.num_train_timesteps))
    return fault("trained_betas", str("a list of num_train_timesteps = ", c.num_train_timesteps), Json(betas));
  return {};
}

Result<void> read_spacing(Reader& in, SchedulerConfig& c) {
  TRY(in.read("timestep_spacing", c.timestep_spacing,
              {std::pair{std::string_view("leading"), Spacing::kLeading},
               {"linspace", Spacing::kLinspace},
               {"trailing", Spacing::kTrailing}}));
  TRY(in.read("steps_offset", c.steps_offset, 0, c.num_train_timesteps - 1));
  for (const auto& [key, kind] : {std::pair{"use_karras_sigmas", ScheduleKind::kKarras},
                                  {"use_exponential_sigmas", ScheduleKind::kExponential},
                                  {"use_beta_sigmas", ScheduleKind::kBeta}}) {
    bool use = false;
    TRY(in.read(key, use));
    if (use && c.sigmas != ScheduleKind::kModel) return fault(key, "false, as another use_*_sigmas is true", Json(use));
    if (use) c.sigmas = kind;
  }
  TRY(in.read("sigma_min", c.sigma_min));
  TRY(in.read("sigma_max", c.sigma_max));
  if (c.sigma_min.value_or(1e-3) <= 0 || c.sigma_max.value_or(1e9) <= c.sigma_min.value_or(1e-3))
    return fault("0 < sigma_min < sigma_max", "in order", Json{c.sigma_min.value_or(0), c.sigma_max.value_or(0)});
  TRY(in.read("interpolation_type", c.log_linear,
              {std::pair{std::string_view("linear"), false}, {"log_linear", true}}));
  TRY(in.read("final_sigmas_type", c.final_sigma_min,
              {std::pair{std::string_view("zero"), false}, {"sigma_min", true}}));
  TRY(in.read("set_alpha_to_one", c.set_alpha_to_one));
  return {};
}

Result<void> read_solver(Reader& in, SchedulerConfig& c) {
  TRY(in.read("solver_order", c.solver_order, 1, 3));
  std::string_view solver = "midpoint";
  TRY(in.read("solver_type", solver,
              {std::pair{std::string_view("midpoint"), "midpoint"},
               {"heun", "heun"},
               {"bh1", "bh1"},
               {"bh2", "bh2"},
               {"logrho", "logrho"}}));
  c.solver_heun = solver == "heun";
  c.solver_bh1 = solver == "bh1";
  TRY(in.read("lower_order_final", c.lower_order_final));
  TRY(in.read("euler_at_final", c.euler_at_final));
  TRY(in.read_list("disable_corrector", c.disable_corrector, "a list of step numbers", [](const Json& item) {
    return item.is_number_integer() && item >= 0 && item <= kMaxTrainTimesteps;
  }));
  TRY(in.read("lambda_min_clipped", c.lambda_min_clipped));
  TRY(in.read("skip_prk_steps", c.skip_prk_steps));
  TRY(in.read("variance_type", c.variance_type,
              {std::pair{std::string_view("fixed_small"), Variance::kSmall},
               {"fixed_small_log", Variance::kSmall},
               {"fixed_large", Variance::kLarge}}));
  TRY(in.read("original_inference_steps", c.original_inference_steps, 1, c.num_train_timesteps));
  TRY(in.read("timestep_scaling", c.timestep_scaling));
  for (const char* key : {"thresholding", "use_flow_sigmas", "use_lu_lambdas", "use_dynamic_shifting"})
    in.refuse_other_than(key, false, c.unsupported);
  in.refuse_other_than("predict_x0", true, c.unsupported);
  in.refuse_other_than("timestep_type", "discrete", c.unsupported);
  return {};
}

Result<void> read_class(Reader& in, SchedulerConfig& c) {
  std::string name = "PNDMScheduler", algorithm = "dpmsolver++";
  TRY(in.read("_class_name", name));
  TRY(in.read("algorithm_type", algorithm));
  c.sampler = sampler_of_class(name);
  if (!c.sampler) c.unsupported = str("[sampling.scheduler_config] expected a known _class_name, got \"", name, "\"");
  if (c.sampler != SamplerKind::kDpmpp2M) return {};
  if (algorithm == "sde-dpmsolver++") {
    c.sampler = c.solver_order == 3 ? SamplerKind::kDpmpp3MSde : SamplerKind::kDpmpp2MSde;
  } else {
    in.refuse_other_than("algorithm_type", "dpmsolver++", c.unsupported);
  }
  return {};
}

}  // namespace

Result<SamplerKind> SchedulerConfig::own_sampler() const {
  if (sampler && unsupported.empty()) return *sampler;
  return input_error(str(unsupported, "; choose another sampler with --sampler"));
}

Result<SchedulerConfig> parse_scheduler_config(std::string_view text) {
  // Python writes the default of lambda_min_clipped as -Infinity, which is not JSON.
  std::string finite(text);
  constexpr std::string_view kInfinity = "-Infinity";
  for (size_t at; (at = finite.find(kInfinity)) != std::string::npos;) finite.replace(at, kInfinity.size(), "-1e300");
  const Json json = Json::parse(finite, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return input_error("[sampling.scheduler_config] expected a JSON object, got something else");
  SchedulerConfig c;
  // What diffusers assumes where the file is silent.
  c.beta_schedule = BetaSchedule::kLinear;
  c.beta_start = 0.0001;
  c.beta_end = 0.02;
  c.steps_offset = 0;
  c.skip_prk_steps = false;
  Reader in(json);
  TRY(read_betas(in, c));
  TRY(in.read("prediction_type", c.prediction_type,
              {std::pair{std::string_view("epsilon"), PredictionType::kEpsilon},
               {"v_prediction", PredictionType::kV},
               {"sample", PredictionType::kSample},
               {"original_sample", PredictionType::kSample}}));
  TRY(read_spacing(in, c));
  TRY(read_solver(in, c));
  TRY(read_class(in, c));
  bool clip_sample = false;
  TRY(in.read("clip_sample", clip_sample));
  if (clip_sample) c.notes.push_back("[sampling.scheduler_config] clip_sample is ignored: latents are not clipped");
  in.ignore({"clip_sample_range", "dynamic_thresholding_ratio", "sample_max_value", "flow_shift", "time_shift_type",
             "solver_p", "shift_terminal", "noise_sampler_seed"});
  const auto unknown = in.unknown();
  if (!unknown.empty())
    c.notes.push_back(str("[sampling.scheduler_config] ignored, as not known here: ", join(unknown, ", ")));
  return c;
}

}  // namespace sfumato::sampling
