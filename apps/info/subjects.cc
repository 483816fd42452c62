#include "apps/info/subjects.h"

#include <charconv>
#include <cmath>

#include "base/cpu.h"
#include "base/strings.h"
#include "base/version.h"
#include "image/image_io.h"
#include "image/parameters.h"
#include "sampling/noise.h"
#include "text/tokenizer.h"

namespace sfumato {
namespace {

using Json = nlohmann::ordered_json;

/// The shortest decimal that reads back as the same number.
std::string shortest(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

Json size_json(const Size& size) {
  return str(size.width, "x", size.height);
}

std::string megabytes(int64_t bytes) {
  return str(fixed(static_cast<double>(bytes) / 1e6, 1), " MB");
}

/// The settings of a model, or SD1.5's.
Result<ModelInfo> settings_of(const std::filesystem::path& model) {
  if (!model.empty()) return TRY(Model::open(model)).info;
  ModelInfo info;
  info.name = "SD1.5's settings";
  return info;
}

}  // namespace

Result<Report> machine_report() {
  std::vector<std::string_view> known;
  for (const Isa isa : kAllIsas) known.push_back(isa_name(isa));
  const auto precision = precision_name(resolve_precision(Precision::kAuto));
  const Result<std::filesystem::path> embedded = own_model_path("emoji");
  const std::string model = embedded ? embedded->string() : "not found";
  const std::string text = str("sfumato ", kVersion, "\n",                     //
                               "cpu                ", cpu_model_name(), "\n",  //
                               "instruction set    ", isa_name(active_isa()), " (this machine has ",
                               isa_name(machine_isa()), "; SFUMATO_MAX_ISA takes ", join(known, ", "), ")\n",  //
                               "threads            ", default_threads(), "\n",                                 //
                               "precision          auto takes ", precision, "\n",                              //
                               "embedded model     ", model, "\n");
  return Report{text,
                {{"version", kVersion},
                 {"cpu", cpu_model_name()},
                 {"isa", isa_name(active_isa())},
                 {"machine_isa", isa_name(machine_isa())},
                 {"known_isas", known},
                 {"threads", default_threads()},
                 {"precision_auto", precision},
                 {"embedded_model", embedded ? Json(model) : Json()}}};
}

Result<Report> picture_report(const std::filesystem::path& path) {
  const std::string text = TRY(read_parameters(path));
  Report report{text + "\n", {{"parameters", text}}};
  if (const Result<GenerationInfo> info = parse_parameters(text)) {  // other programs write other texts
    report.json["prompt"] = info->prompt;
    report.json["negative_prompt"] = info->negative;
    for (const auto& [key, value] : info->fields) report.json["fields"][key] = value;
  }
  return report;
}

Result<Report> model_report(const std::filesystem::path& path) {
  const ModelInfo info = TRY(Model::open(path)).info;
  const sampling::SchedulerConfig& scheduler = info.scheduler;
  const std::string sampler(scheduler.sampler ? sampling::sampler_name(*scheduler.sampler) : "unknown");
  const auto prediction = sampling::prediction_name(scheduler.prediction_type);
  std::ostringstream text;
  text << "name               " << info.name << "\n"
       << "family             " << info.family << "\n"
       << "hash               " << info.hash << "\n"
       << "defaults           " << size_json(info.default_size).get<std::string>() << ", " << info.default_steps
       << " steps, guidance " << info.default_guidance << "\n"
       << "scheduler          " << sampler << ", " << prediction << "\n";
  Json components = Json::array();
  for (const ComponentInfo& part : info.components) {
    text << std::left << std::setw(19) << part.name << std::setw(30) << part.class_name << std::setw(8) << part.dtype
         << std::right << std::setw(14) << part.parameters << " parameters" << std::setw(14) << megabytes(part.bytes)
         << "\n";
    components.push_back({{"name", part.name},
                          {"class", part.class_name},
                          {"dtype", part.dtype},
                          {"parameters", part.parameters},
                          {"bytes", part.bytes}});
  }
  return Report{text.str(),
                {{"name", info.name},
                 {"family", info.family},
                 {"hash", info.hash},
                 {"size", size_json(info.default_size)},
                 {"steps", info.default_steps},
                 {"guidance", info.default_guidance},
                 {"sampler", sampler},
                 {"prediction", prediction},
                 {"components", components}}};
}

Result<Report> tokens_report(const std::filesystem::path& model, const std::string& prompt) {
  constexpr int kSd15Pad = text::kEndToken;
  std::vector<int> pads = {kSd15Pad};
  if (!model.empty()) {
    pads.clear();
    for (const TextEncoder& encoder : TRY(Model::open(model)).text_encoders) pads.push_back(encoder.pad_id);
  }
  Report report{"", {{"encoders", Json::array()}}};
  for (const int pad : pads) {
    const text::TokenizedPrompt tokens = text::tokenize_prompt(text::Tokenizer::clip(), prompt, pad);
    const std::vector<int32_t> ids(tokens.ids.begin(), tokens.ids.begin() + tokens.end_index + 1);
    report.text += join(ids, " ") + "\n";
    report.json["encoders"].push_back({{"ids", ids}, {"pad_id", pad}, {"length", tokens.ids.size()}});
    report.json["dropped"] = tokens.dropped;
  }
  const std::string dropped = report.json["dropped"].get<std::string>();
  if (!dropped.empty()) report.notes.push_back(str("the prompt is longer than 75 tokens; left out: \"", dropped, "\""));
  return report;
}

Result<Report> schedule_report(const std::filesystem::path& model, const Request& request) {
  ModelInfo info = TRY(settings_of(model));
  sampling::SchedulerConfig& config = info.scheduler;
  if (request.prediction) config.prediction_type = *request.prediction;
  const sampling::SamplerKind sampler = request.sampler ? *request.sampler : TRY(config.own_sampler());
  const sampling::ScheduleKind kind = request.schedule.value_or(sampling::ScheduleKind::kModel);
  const sampling::Schedule schedule =
      TRY(sampling::make_schedule(config, sampler, kind, request.steps.value_or(info.default_steps)));
  const std::vector<float> timesteps = schedule.timesteps(), sigmas = schedule.sigmas();
  Json sigmas_json = Json::array();
  for (const float sigma : sigmas)  // JSON has no infinity
    sigmas_json.push_back(std::isfinite(sigma) ? Json(sigma) : Json("inf"));
  Report report;
  report.notes = schedule.notes;
  for (size_t i = 0; i < timesteps.size(); ++i)
    report.text += shortest(timesteps[i]) + " " + shortest(sigmas[i]) + "\n";
  report.json = {{"sampler", sampling::sampler_name(sampler)},
                 {"scheduler", sampling::schedule_name(kind)},
                 {"prediction", sampling::prediction_name(config.prediction_type)},
                 {"init_noise_sigma", schedule.init_noise_sigma},
                 {"timesteps", timesteps},
                 {"sigmas", sigmas_json}};
  return report;
}

Result<Report> noise_report(const Request& request, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  sampling::make_generator(request.rng, request.seed)->normal(values);
  Report report;
  for (const float value : values) report.text += shortest(value) + "\n";
  report.json = {
      {"seed", request.seed}, {"rng", sampling::rng_name(request.rng)}, {"shape", shape.dims()}, {"values", values}};
  return report;
}

}  // namespace sfumato
