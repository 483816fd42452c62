// What the server says about itself: health, metrics, models, options, OpenAPI; and about a picture.
#include <algorithm>

#include "base/strings.h"
#include "base/version.h"
#include "image/image_io.h"
#include "image/parameters.h"
#include "pipeline/parse.h"
#include "server/router.h"
#include "server/service.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::ordered_json;

HttpResponse ready(Service& service) {
  const bool is_ready = service.workers().is_ready() && !service.is_draining();
  const char* why = is_ready ? "" : service.is_draining() ? "draining" : "no worker is ready";
  return json_response({{"ready", is_ready},
                        {"reason", why},
                        {"queued", service.queue().waiting()},
                        {"running", service.queue().running().size()}},
                       is_ready ? 200 : 503);
}

/// The Prometheus text format, version 0.0.4.
class Metrics {
 public:
  void add(const char* name, const char* type, const char* help, double value) {
    head(name, type, help);
    sample(name, "", value);
  }
  void head(const char* name, const char* type, const char* help) {
    text_ += str("# HELP sfumato_", name, " ", help, "\n# TYPE sfumato_", name, " ", type, "\n");
  }
  void sample(const char* name, const std::string& labels, double value) {
    text_ += str("sfumato_", name, labels.empty() ? "" : "{" + labels + "}", " ", value, "\n");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string metrics(Service& service) {
  const Counters& counters = service.counters();
  Metrics out;
  out.head("requests_total", "counter", "HTTP requests by first part of the path and status.");
  for (const auto& [key, count] : counters.requests)
    out.sample("requests_total", str("path=\"", key.first, "\",status=\"", key.second, "\""),
               static_cast<double>(count));
  out.head("jobs_total", "counter", "Jobs submitted and refused, and how they ended.");
  for (const auto& [state, count] : counters.jobs)
    out.sample("jobs_total", str("state=\"", state, "\""), static_cast<double>(count));
  out.add("pictures_total", "counter", "Pictures drawn.", static_cast<double>(counters.pictures));
  out.add("job_seconds_total", "counter", "Time that jobs ran.", counters.job_seconds);
  out.add("queue_length", "gauge", "Jobs that wait.", static_cast<double>(service.queue().waiting()));
  out.add("jobs_running", "gauge", "Jobs that are being drawn.", static_cast<double>(service.queue().running().size()));
  out.add("ready", "gauge", "1 if a worker can draw.", service.workers().is_ready() && !service.is_draining());
  out.add("worker_restarts_total", "counter", "Workers that had to be started again.", service.workers().restarts());
  return out.text();
}

Json models(Service& service) {
  Json list = Json::array();
  for (const ServedModel& served : service.models()) {
    const ModelInfo& info = served.model.info;
    list.push_back({{"name", served.name},
                    {"family", info.family},
                    {"default_width", info.default_size.width},
                    {"default_height", info.default_size.height},
                    {"default_steps", info.default_steps},
                    {"default_guidance", info.default_guidance},
                    {"max_pixels", service.limits().pixels}});
  }
  return list;
}

Json options(Service& service) {
  const RequestLimits& limits = service.limits();
  return {{"samplers", sampling::sampler_names()},
          {"schedulers", sampling::schedule_names()},
          {"limits", {{"max_pixels", limits.pixels}, {"max_steps", limits.steps}, {"max_images", limits.pictures}}},
          {"version", kVersion}};
}

// The words of the `parameters` text for fields of a request.
constexpr std::pair<const char*, const char*> kTexts[] = {
    {"Sampler", "sampler"}, {"Schedule type", "scheduler"}, {"Denoising strength", "strength"}};
constexpr std::pair<const char*, const char*> kNumbers[] = {{"Steps", "steps"},
                                                            {"CFG scale", "cfg_scale"},
                                                            {"Seed", "seed"},
                                                            {"Clip skip", "clip_skip"},
                                                            {"CFG rescale", "guidance_rescale"}};

Json fields_of(const GenerationInfo& info) {
  Json fields = {{"prompt", info.prompt}, {"negative_prompt", info.negative}};
  for (const auto& [theirs, ours] : kTexts)
    if (const std::string* value = info.find(theirs)) fields[ours] = *value;
  for (const auto& [theirs, ours] : kNumbers)
    if (const std::string* value = info.find(theirs))
      if (const Json number = Json::parse(*value, nullptr, false); number.is_number()) fields[ours] = number;
  if (const std::string* size = info.find("Size"))
    if (const Result<Size> parsed = parse_size("Size", *size)) {
      fields["width"] = parsed->width;
      fields["height"] = parsed->height;
    }
  return fields;
}

HttpResponse png_info(const std::string& bytes) {
  const Result<std::string> parameters = parameters_of(bytes_of(bytes));
  if (!parameters) return refusal(parameters.error());
  const Result<GenerationInfo> info = parse_parameters(*parameters);
  if (!info) return refusal(info.error());
  return json_response({{"parameters", *parameters}, {"fields", fields_of(*info)}});
}

/// Made from the routes themselves; bodies are described in docs/server.md.
Json openapi(const Router& router) {
  Json paths = Json::object();
  for (const Route& route : router.routes()) {
    if (route.summary.empty()) continue;
    std::string path = route.path, method = lowercase_ascii(route.method);
    Json operation = {
        {"summary", route.summary},
        {"responses", {{"default", {{"description", "the answer, or {\"error\": {message, type, param, code}}"}}}}}};
    for (const char* name : {"id", "index"}) {  // in this order, in every path that has any
      const size_t hole = path.find("{}");
      if (hole == std::string::npos) break;
      path.replace(hole, 2, str("{", name, "}"));
      operation["parameters"].push_back(
          {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
    }
    paths[path][method] = operation;
  }
  return {{"openapi", "3.0.3"}, {"info", {{"title", "Sfumato"}, {"version", kVersion}}}, {"paths", paths}};
}

Handler answer(std::function<HttpResponse(HttpRequest&)> make) {
  return [make = std::move(make)](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
    co_return make(request);
  };
}

}  // namespace

void add_about_routes(Router& router, Service& service) {
  router.add({"GET", "/health/live", answer([](HttpRequest&) {
                return json_response({{"live", true}});
              }),
              true, "The process answers"});
  router.add({"GET", "/health/ready", answer([&](HttpRequest&) { return ready(service); }), true,
              "Requests will be drawn: 200, else 503"});
  router.add({"GET", "/metrics", answer([&](HttpRequest&) {
                return HttpResponse{200, "text/plain; version=0.0.4; charset=utf-8", metrics(service)};
              }),
              false, "Prometheus metrics"});
  router.add({"GET", "/api/models", answer([&](HttpRequest&) { return json_response(models(service)); }), false,
              "The models and their defaults"});
  router.add({"GET", "/api/options", answer([&](HttpRequest&) { return json_response(options(service)); }), false,
              "Samplers, schedules, limits"});
  router.add({"POST", "/api/png-info", answer([](HttpRequest& request) { return png_info(request.body); }), false,
              "The parameters in a picture; the body is the file"});
  router.add({"GET", "/openapi.json", answer([&router](HttpRequest&) { return json_response(openapi(router)); }), true,
              "This document"});
}

}  // namespace sfumato::server
