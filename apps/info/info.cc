#include "apps/info/info.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/command_line.h"
#include "backend/backend.h"
#include "base/cpu.h"
#include "base/strings.h"
#include "base/version.h"
#include "image/image_io.h"
#include "image/parameters.h"
#include "pipeline/model.h"
#include "pipeline/parse.h"
#include "sampling/noise.h"
#include "text/tokenizer.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What any of the subcommands may be told.
struct InfoOptions {
  std::string subject, text, model, sampler, schedule, shape, rng = "cpu", seed = "0", steps;
  bool json = false;
};

void print(const Json& value) {
  std::printf("%s\n", value.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

/// One "name  value" line a field, nested objects indented.
void print_lines(const Json& value, const std::string& indent = "") {
  for (const auto& [key, field] : value.items()) {
    if (field.is_object() || (field.is_array() && !field.empty() && field[0].is_object())) {
      std::printf("%s%s\n", indent.c_str(), key.c_str());
      for (const auto& item : field.is_array() ? field : Json::array({field})) print_lines(item, indent + "  ");
      continue;
    }
    const std::string text = field.is_string()  ? field.get<std::string>()
                             : field.is_array() ? join(field, " ")
                                                : field.dump();
    std::printf("%s%-12s %s\n", indent.c_str(), key.c_str(), text.c_str());
  }
}

void show(const Json& value, bool json) {
  json ? print(value) : print_lines(value);
}

Result<void> machine(const InfoOptions& o) {
  Json isas = Json::array();
  for (const Isa isa : kAllIsas)
    if (isa <= machine_isa()) isas.push_back(isa_name(isa));
  show({{"version", kVersion},
        {"cpu", cpu_model_name()},
        {"isa", isa_name(active_isa())},
        {"available", isas},
        {"threads", default_threads()},
        {"precision", precision_name(resolve_precision(Precision::kAuto))},
        {"backends", Json::array({"cpu"})}},
       o.json);
  return {};
}

Result<void> picture(const InfoOptions& o) {
  const std::string text = TRY(read_parameters(o.subject));
  if (!o.json) {
    std::printf("%s\n", text.c_str());
    return {};
  }
  const GenerationInfo info = TRY(parse_parameters(text));
  Json out = {{"prompt", info.prompt}, {"negative_prompt", info.negative}};
  for (const auto& [key, value] : info.fields) out[key] = value;
  print(out);
  return {};
}

Result<void> model(const InfoOptions& o) {
  const Model m = TRY(Model::open(o.subject));
  Json components = Json::array();
  for (const ComponentInfo& c : m.info.components)
    components.push_back({{"component", c.name},
                          {"class", c.class_name},
                          {"dtype", c.dtype},
                          {"parameters", c.parameters},
                          {"bytes", c.bytes}});
  const auto& scheduler = m.info.scheduler;
  show({{"name", m.info.name},
        {"family", m.info.family},
        {"hash", m.info.hash},
        {"size", str(m.info.default_size.width, "x", m.info.default_size.height)},
        {"steps", m.info.default_steps},
        {"guidance", m.info.default_guidance},
        {"sampler", scheduler.sampler ? sampling::sampler_name(*scheduler.sampler) : "unknown"},
        {"prediction", sampling::prediction_name(scheduler.prediction_type)},
        {"components", components}},
       o.json);
  return {};
}

/// Without a model: SD1.5's settings.
Result<std::vector<int>> pad_ids(const InfoOptions& o) {
  if (o.model.empty()) return std::vector<int>{text::kEndToken};
  std::vector<int> ids;
  for (const TextEncoder& encoder : TRY(Model::open(o.model)).text_encoders) ids.push_back(encoder.pad_id);
  return ids;
}

Result<void> tokens(const InfoOptions& o) {
  Json all = Json::array();
  for (const int pad : TRY(pad_ids(o))) {
    const text::TokenizedPrompt prompt = text::tokenize_prompt(text::Tokenizer::clip(), o.text, pad);
    all.push_back(prompt.ids);
    if (!o.json) std::printf("%s\n", join(prompt.ids, " ").c_str());
  }
  if (o.json) print({{"text", o.text}, {"ids", all}});
  return {};
}

Result<void> schedule(const InfoOptions& o) {
  sampling::SchedulerConfig config;
  if (!o.model.empty()) config = TRY(Model::open(o.model)).info.scheduler;
  std::optional<sampling::ScheduleKind> kind;
  std::optional<sampling::SamplerKind> sampler;
  if (!o.sampler.empty()) {
    const sampling::SamplerChoice choice = TRY(sampling::parse_sampler(o.sampler));
    sampler = choice.sampler;
    kind = choice.schedule;
  }
  if (!o.schedule.empty()) kind = TRY(sampling::parse_schedule(o.schedule));
  const int steps = TRY(parse_number<int>("--steps", o.steps.empty() ? "20" : o.steps, 1, 1000));
  const sampling::Schedule s = TRY(sampling::make_schedule(config, sampler ? *sampler : TRY(config.own_sampler()),
                                                           kind.value_or(sampling::ScheduleKind::kModel), steps));
  const std::vector<float> timesteps = s.timesteps(), sigmas = s.sigmas();
  const auto finite = [](float x) { return std::isfinite(x) ? Json(x) : Json("inf"); };
  Json rows = Json::array();
  for (size_t i = 0; i < timesteps.size(); ++i) {
    rows.push_back({{"timestep", timesteps[i]}, {"sigma", finite(sigmas[i])}});
    if (!o.json) std::printf("%.9g %.9g\n", timesteps[i], sigmas[i]);
  }
  if (o.json)
    print({{"sampler", sampling::sampler_name(s.sampler)}, {"init_noise_sigma", s.init_noise_sigma}, {"steps", rows}});
  return {};
}

Result<void> noise(const InfoOptions& o) {
  const auto seed = TRY(parse_number<int64_t>("--seed", o.seed, 0, UINT32_MAX));
  const sampling::RngKind kind = TRY(sampling::parse_rng(o.rng));
  int64_t count = 1;
  for (const std::string& side : split(o.shape.empty() ? "4x64x64" : o.shape, 'x')) {
    count *= TRY(parse_number<int>("--shape", side, 1, 1 << 16));
    if (count > 1 << 28) return usage_error(str("[cli] --shape expected at most 2^28 values, got ", o.shape));
  }
  std::vector<float> values(static_cast<size_t>(count));
  sampling::make_generator(kind, static_cast<uint64_t>(seed))->normal(values);
  if (o.json) {
    print({{"seed", seed}, {"rng", sampling::rng_name(kind)}, {"values", values}});
    return {};
  }
  for (const float v : values) std::printf("%.9g\n", v);
  return {};
}

}  // namespace

Result<void> info(const std::vector<std::string>& words) {
  CLI::App app(
      "Looks inside.\n"
      "  sfumato info                          this machine\n"
      "  sfumato info PICTURE                  how it was made\n"
      "  sfumato info MODEL                    what is in the folder\n"
      "  sfumato info tokens TEXT [-m MODEL]   token ids, one line an encoder\n"
      "  sfumato info schedule --steps N [--sampler S] [--scheduler K] [-m MODEL]\n"
      "  sfumato info noise --seed S --shape 4x64x64 [--rng cpu|philox]",
      "sfumato info");
  InfoOptions o;
  app.add_option("subject", o.subject, "a picture, a model folder, or one of the words above");
  app.add_option("text", o.text, "for tokens");
  app.add_option("--model,-m", o.model, "default: Stable Diffusion 1.5's settings");
  app.add_option("--steps", o.steps, "default 20");
  app.add_option("--sampler,--sampling-method", o.sampler, "default: the model's");
  app.add_option("--scheduler,--schedule", o.schedule, "default: the model's");
  app.add_option("--seed,-s", o.seed, "0 to 4294967295");
  app.add_option("--shape", o.shape, "as in 4x64x64");
  app.add_option("--rng", o.rng, "cpu or philox");
  app.add_flag("--json", o.json, "JSON on standard output");
  if (!TRY(parse_words(app, words))) return {};

  if (o.subject.empty()) return machine(o);
  if (o.subject == "tokens") return tokens(o);
  if (o.subject == "schedule") return schedule(o);
  if (o.subject == "noise") return noise(o);
  std::error_code failed;
  const bool is_file = fs::is_regular_file(o.subject, failed);
  return is_file && fs::path(o.subject).extension() != ".safetensors" ? picture(o) : model(o);
}

}  // namespace sfumato
