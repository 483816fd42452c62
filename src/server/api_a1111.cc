// /sdapi/v1: as front ends for AUTOMATIC1111's web UI speak it.
#include <algorithm>

#include "base/strings.h"
#include "image/image_io.h"
#include "image/parameters.h"
#include "pipeline/options_json.h"
#include "server/base64.h"
#include "server/router.h"
#include "server/service.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Their names for options of ours.
constexpr std::pair<const char*, const char*> kRenamed[] = {
    {"sampler_name", "sampler"}, {"sampler_index", "sampler"}, {"denoising_strength", "strength"}};

// Fields that ask for nothing unless they have another value than these (or null, false, 0, "", [], {}).
const Json& neutral_values() {
  static const Json values = {{"seed_resize_from_h", {-1, 0}},
                              {"seed_resize_from_w", {-1, 0}},
                              {"subseed", {-1, 0}},
                              {"s_noise", {1}},
                              {"override_settings_restore_afterwards", {true}},
                              {"hr_scale", {2}},
                              {"hr_upscaler", {"Latent"}},
                              {"hr_second_pass_steps", {0, 20}},
                              {"resize_mode", {0}},
                              {"mask_blur", {4}},
                              {"mask_blur_x", {4}},
                              {"mask_blur_y", {4}},
                              {"inpainting_fill", {1}},
                              {"inpaint_full_res_padding", {0, 32}},
                              {"sampler_index", {"Euler"}},
                              {"image_cfg_scale", {1.5}},
                              {"refiner_switch_at", {1}},
                              {"s_tmax", {0}},
                              {"eta", {1}},
                              {"inpaint_full_res", {false}},
                              {"initial_noise_multiplier", {1}}};
  return values;
}

// Every other field that their clients send.
constexpr const char* kOthers[] = {"styles",
                                   "subseed_strength",
                                   "restore_faces",
                                   "tiling",
                                   "s_min_uncond",
                                   "s_churn",
                                   "s_tmin",
                                   "refiner_checkpoint",
                                   "disable_extra_networks",
                                   "firstpass_image",
                                   "comments",
                                   "enable_hr",
                                   "firstphase_width",
                                   "firstphase_height",
                                   "hr_resize_x",
                                   "hr_resize_y",
                                   "hr_checkpoint_name",
                                   "hr_sampler_name",
                                   "hr_scheduler",
                                   "hr_prompt",
                                   "hr_negative_prompt",
                                   "hr_distilled_cfg",
                                   "hr_additional_modules",
                                   "hr_cfg",
                                   "force_task_id",
                                   "script_name",
                                   "script_args",
                                   "alwayson_scripts",
                                   "infotext",
                                   "latent_mask",
                                   "inpainting_mask_invert",
                                   "include_init_images",
                                   "mask_round",
                                   "distilled_cfg_scale",
                                   "use_deprecated_controlnet"};

bool is_empty(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "" || (value.is_structured() && value.empty());
}

bool is_neutral(const std::string& field, const Json& value) {
  const auto found = neutral_values().find(field);
  return is_empty(value) ||
         (found != neutral_values().end() && std::find(found->begin(), found->end(), value) != found->end());
}

bool is_theirs(const std::string& field) {
  return neutral_values().contains(field) ||
         std::find(std::begin(kOthers), std::end(kOthers), field) != std::end(kOthers);
}

/// Clients send these without a mask, too.
bool is_of_masks(const std::string& field) {
  return field.starts_with("inpaint") || field.starts_with("mask_");
}

Error expected(const std::string& field, const char* what) {
  return usage_error(str("[server.sdapi] ", field, " expected ", what));
}

/// `override_settings`: a model, clip skip; nothing else is known here.
Result<void> read_settings(const Json& settings, Asked& asked) {
  if (settings.is_null()) return {};
  if (!settings.is_object()) return expected("override_settings", "an object");
  for (const auto& [name, value] : settings.items()) {
    if (name == "sd_model_checkpoint" && value.is_string())
      asked.model = value;
    else if (name == "CLIP_stop_at_last_layers")
      asked.fields["clip_skip"] = value;
    else if (name == "samples_format" && value.is_string())
      TRY(set_format(asked, name, value == "jpg" ? "jpeg" : value.get<std::string>()));
    else if (!is_empty(value))
      return usage_error(str("[server.sdapi] override_settings: \"", printable(name), "\" is not known here"));
  }
  return {};
}

Result<int> count_of(const Json& body, const char* field) {
  const Json value = body.value(field, Json());
  if (value.is_null()) return 1;
  constexpr int kMost = 1000;
  if (!value.is_number_integer() || value < 1 || value > kMost) return expected(field, "a whole number from 1");
  return value.get<int>();
}

Result<std::string> picture_of(const std::string& field, const Json& value) {
  if (!value.is_string()) return expected(field, "a picture in base64");
  return from_base64(field, value.get<std::string>());
}

Result<void> read_pictures(const Json& body, Asked& asked) {
  const Json pictures = body.value("init_images", Json());
  if (!pictures.is_array() || pictures.size() != 1) return expected("init_images", "a list of one picture");
  asked.init = TRY(picture_of("init_images", pictures[0]));
  const Json mask = body.value("mask", Json());
  if (!is_empty(mask)) asked.mask = TRY(picture_of("mask", mask));
  return {};
}

Result<Asked> read_request(const std::string& text, bool has_pictures) {
  const Json body = TRY(parse_json(text));
  if (!body.is_object()) return usage_error("[server.sdapi] expected a JSON object");
  Asked asked;
  asked.preview = true;
  asked.fields["prompt"] = "";
  if (has_pictures) TRY(read_pictures(body, asked));
  TRY(read_settings(body.value("override_settings", Json()), asked));
  const int pictures = TRY(count_of(body, "batch_size")) * TRY(count_of(body, "n_iter"));
  if (pictures > 1) asked.fields["batch_count"] = pictures;
  for (const auto& [field, value] : body.items()) {
    if (field == "batch_size" || field == "n_iter" || field == "override_settings" || value.is_null()) continue;
    if (has_pictures && (field == "init_images" || field == "mask")) continue;
    if (asked.mask.empty() && is_of_masks(field)) continue;
    if (field == "send_images" || field == "save_images" || field.starts_with("do_not_save")) continue;
    const auto* renamed =
        std::find_if(std::begin(kRenamed), std::end(kRenamed), [&](const auto& pair) { return field == pair.first; });
    const std::string name = renamed == std::end(kRenamed) ? field : renamed->second;
    const Option* option = find_option(name);
    const bool is_option = option && is_for_requests(*option) && !is_theirs(field);
    if (field == "sampler_index" && (body.contains("sampler_name") || is_neutral(field, value))) continue;
    if (is_option || renamed != std::end(kRenamed)) {
      if (name == "strength" && !has_pictures) continue;                                     // of their second pass
      if (name.ends_with("prompt") && !value.is_string()) return expected(field, "a text");  // jobs take lists
      const bool is_default = value == "" || (name == "scheduler" && value == "Automatic");
      if (!is_default || name == "prompt" || name == "negative_prompt") asked.fields[name] = value;
    } else if (!is_theirs(field)) {
      return usage_error(str("[server.sdapi] the field \"", printable(field), "\" is not known here"));
    } else if (!is_neutral(field, value)) {
      return limit_error(str(field, " expected nothing: this server cannot do that yet, leave it out"));
    }
  }
  return asked;
}

OrderedJson info_of(const Job& job) {
  OrderedJson prompts = OrderedJson::array(), seeds = OrderedJson::array(), texts = OrderedJson::array();
  for (const JobPicture& picture : job.pictures) {
    prompts.push_back(job.spec.fields.value("prompt", ""));
    seeds.push_back(picture.seed);
    texts.push_back(picture.parameters);
  }
  const std::string negative = job.spec.fields.value("negative_prompt", "");
  return {{"prompt", job.spec.fields.value("prompt", "")},
          {"all_prompts", prompts},
          {"negative_prompt", negative},
          {"all_negative_prompts", std::vector<std::string>(job.pictures.size(), negative)},
          {"seed", job.pictures.front().seed},
          {"all_seeds", seeds},
          {"subseed", -1},
          {"all_subseeds", std::vector<int>(job.pictures.size(), -1)},
          {"width", job.pictures.front().width},
          {"height", job.pictures.front().height},
          {"batch_size", job.pictures.size()},
          {"sd_model_name", job.spec.model},
          {"infotexts", texts},
          {"index_of_first_image", 0}};
}

Handler draw(Service& service, bool has_pictures) {
  return [&service, has_pictures](HttpRequest& http, ClientWatch& client) -> Awaitable<HttpResponse> {
    Result<Asked> asked = read_request(http.body, has_pictures);
    if (!asked) co_return refusal(asked.error());
    std::variant<JobPtr, HttpResponse> submitted = co_await service.submit(*std::move(asked));
    if (auto* refused = std::get_if<HttpResponse>(&submitted)) co_return std::move(*refused);
    const JobPtr job = std::get<JobPtr>(submitted);
    co_await service.finish(job, client);
    OrderedJson pictures = OrderedJson::array();
    if (job->state == JobState::kFailed) co_return refusal(job->error);
    if (job->pictures.empty())  // interrupted: what is there, as they do
      co_return json_response({{"images", pictures}, {"parameters", OrderedJson::object()}, {"info", "{}"}});
    for (const JobPicture& picture : job->pictures) pictures.push_back(to_base64(picture.bytes));
    co_return json_response({{"images", pictures}, {"parameters", job->spec.fields}, {"info", info_of(*job).dump()}});
  };
}

HttpResponse progress(Service& service) {
  const std::vector<JobPtr>& running = service.queue().running();
  const Job* job = running.empty() ? nullptr : running.front().get();
  const double share = !job || job->steps == 0 ? 0 : static_cast<double>(job->step) / job->steps;
  const double eta = job ? service.queue().eta(*job) : 0;
  const bool has_preview = job && !job->preview.empty();
  return json_response({{"progress", share},
                        {"eta_relative", std::max(0.0, eta)},
                        {"state",
                         {{"skipped", false},
                          {"interrupted", false},
                          {"stopping_generation", false},
                          {"job", job ? job->id : ""},
                          {"job_count", job ? job->spec.pictures : 0},
                          {"job_timestamp", "0"},
                          {"job_no", 0},
                          {"sampling_step", job ? job->step : 0},
                          {"sampling_steps", job ? job->steps : 0}}},
                        {"current_image", has_preview ? OrderedJson(to_base64(job->preview)) : OrderedJson()},
                        {"textinfo", OrderedJson()}});
}

HttpResponse png_info(const std::string& text) {
  const auto read = [&]() -> Result<std::string> {
    const Json body = TRY(parse_json(text));
    if (!body.is_object() || !body.contains("image")) return expected("image", "a picture in base64");
    const std::string bytes = TRY(picture_of("image", body["image"]));
    return parameters_of(bytes_of(bytes));
  };
  const Result<std::string> parameters = read();
  if (!parameters) return refusal(parameters.error());
  OrderedJson fields = OrderedJson::object();
  if (const Result<GenerationInfo> info = parse_parameters(*parameters)) {
    fields["Prompt"] = info->prompt;
    fields["Negative prompt"] = info->negative;
    for (const auto& [key, value] : info->fields) fields[key] = value;
  }
  return json_response({{"info", *parameters}, {"items", {{"parameters", *parameters}}}, {"parameters", fields}});
}

OrderedJson samplers() {
  OrderedJson list = OrderedJson::array();
  for (const std::string_view name : sampling::sampler_names())
    list.push_back({{"name", name}, {"aliases", OrderedJson::array()}, {"options", OrderedJson::object()}});
  return list;
}

OrderedJson schedulers() {
  OrderedJson list = {{{"name", "automatic"}, {"label", "Automatic"}, {"aliases", OrderedJson()}}};
  for (const std::string_view name : sampling::schedule_names())
    list.push_back({{"name", name}, {"label", name}, {"aliases", OrderedJson()}});
  return list;
}

OrderedJson models(Service& service) {
  OrderedJson list = OrderedJson::array();
  for (const ServedModel& model : service.models())
    list.push_back({{"title", model.name},
                    {"model_name", model.name},
                    {"hash", model.model.info.hash},
                    {"sha256", OrderedJson()},
                    {"filename", model.name},
                    {"config", OrderedJson()}});
  return list;
}

/// Their settings are one state for all clients; here a request says what it wants, so there is nothing to set.
HttpResponse set_options(Service& service, const std::string& text) {
  const Result<Json> body = parse_json(text);
  if (!body || !body->is_object()) return error_response(400, "[server.sdapi] options expected a JSON object");
  for (const auto& [name, value] : body->items()) {
    const bool is_same_model = name == "sd_model_checkpoint" && value == service.models().front().name;
    if (!is_same_model && !is_empty(value))
      return error_response(422, str("[server.sdapi] the option \"", printable(name),
                                     "\" cannot be set for everybody; send it as override_settings of a request"));
  }
  return json_response(OrderedJson::object());
}

Handler fixed(std::function<OrderedJson()> make) {
  return [make = std::move(make)](HttpRequest&, ClientWatch&) -> Awaitable<HttpResponse> {
    co_return json_response(make());
  };
}

Handler interrupt(Service& service) {
  return [&service](HttpRequest&, ClientWatch&) -> Awaitable<HttpResponse> {
    const std::vector<JobPtr> running = service.queue().running();
    for (const JobPtr& job : running) service.cancel(job);
    co_return json_response(OrderedJson::object());
  };
}

}  // namespace

void add_a1111_routes(Router& router, Service& service) {
  const auto add = [&](const char* method, const char* name, Handler handler, const char* summary = "") {
    router.add({method, str("/sdapi/v1/", name), std::move(handler), false, summary});
  };
  add("POST", "txt2img", draw(service, false), "Draw (A1111)");
  add("POST", "img2img", draw(service, true), "Draw from a picture (A1111)");
  add(
      "GET", "progress",
      [&service](HttpRequest&, ClientWatch&) -> Awaitable<HttpResponse> { co_return progress(service); },
      "The job that runs (A1111)");
  add("POST", "interrupt", interrupt(service), "Stop the jobs that run (A1111)");
  add("POST", "skip", interrupt(service));
  add(
      "POST", "png-info",
      [](HttpRequest& http, ClientWatch&) -> Awaitable<HttpResponse> { co_return png_info(http.body); },
      "A picture's parameters (A1111)");
  add("GET", "options", fixed([&service] {
        return OrderedJson{{"sd_model_checkpoint", service.models().front().name},
                           {"sd_checkpoint_hash", service.models().front().model.info.hash},
                           {"CLIP_stop_at_last_layers", 1},
                           {"samples_format", "png"},
                           {"show_progress_type", "Approx cheap"}};
      }));
  add("POST", "options", [&service](HttpRequest& http, ClientWatch&) -> Awaitable<HttpResponse> {
    co_return set_options(service, http.body);
  });
  add("GET", "samplers", fixed(samplers));
  add("GET", "schedulers", fixed(schedulers));
  add("GET", "sd-models", fixed([&service] { return models(service); }));
  for (const char* none : {"sd-vae", "embeddings-list", "upscalers", "prompt-styles", "loras", "hypernetworks",
                           "face-restorers", "latent-upscale-modes", "sd-modules"})
    add("GET", none, fixed([] { return OrderedJson::array(); }));
  add("GET", "embeddings", fixed([] {
        return OrderedJson{{"loaded", OrderedJson::object()}, {"skipped", OrderedJson::object()}};
      }));
  add("GET", "scripts", fixed([] {
        return OrderedJson{{"txt2img", OrderedJson::array()}, {"img2img", OrderedJson::array()}};
      }));
  add("GET", "script-info", fixed([] { return OrderedJson::array(); }));
  add("GET", "cmd-flags", fixed([] { return OrderedJson{{"api", true}}; }));
  add("GET", "memory", fixed([] {
        return OrderedJson{{"ram", OrderedJson::object()}, {"cuda", {{"error", "this server draws on the CPU"}}}};
      }));
}

}  // namespace sfumato::server
