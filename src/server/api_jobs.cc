// /api/jobs: what the page uses, and programs that want to see a picture grow.
#include "base/strings.h"
#include "pipeline/options_json.h"
#include "pipeline/parse.h"
#include "server/base64.h"
#include "server/router.h"
#include "server/service.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kKeepAlive{10};

Json seconds_or_null(double seconds) {
  return seconds < 0 ? Json() : Json(seconds);
}

std::string picture_url(const Job& job, size_t index) {
  return str("/api/jobs/", job.id, "/images/", index);
}

Json job_json(Service& service, const Job& job) {
  Json pictures = Json::array();
  for (size_t i = 0; i < job.pictures.size(); ++i) {
    const JobPicture& picture = job.pictures[i];
    pictures.push_back({{"index", i},
                        {"url", picture_url(job, i)},
                        {"seed", picture.seed},
                        {"parameters", picture.parameters},
                        {"width", picture.width},
                        {"height", picture.height}});
  }
  return {{"id", job.id},
          {"status", state_name(job.state)},
          {"model", job.spec.model},
          {"position", service.queue().position(job)},
          {"stage", job.stage},
          {"step", job.step},
          {"steps", job.steps},
          {"eta_seconds", seconds_or_null(service.queue().eta(job))},
          {"seconds", job.seconds()},
          {"error", job.state == JobState::kFailed ? Json({{"message", job.error.message}}) : Json()},
          {"warnings", job.warnings},
          {"images", pictures}};
}

Result<std::string> take_text(nlohmann::json& body, const char* field) {
  const auto found = body.find(field);
  if (found == body.end() || found->is_null()) return std::string();
  if (!found->is_string()) return usage_error(str("[server.jobs] ", field, " expected a text"));
  std::string text = *found;
  body.erase(found);
  return text;
}

Result<Asked> read_job(const std::string& text) {
  nlohmann::json body = TRY(parse_json(text));
  if (!body.is_object())
    return usage_error("[server.jobs] expected a JSON object, as in {\"prompt\": \"a red apple\"}");
  Asked asked;
  asked.model = TRY(take_text(body, "model"));
  if (const std::string init = TRY(take_text(body, "init_image")); !init.empty())
    asked.init = TRY(from_base64("init_image", init));
  if (const std::string mask = TRY(take_text(body, "mask")); !mask.empty()) asked.mask = TRY(from_base64("mask", mask));
  if (const std::string format = TRY(take_text(body, "output_format")); !format.empty())
    TRY(set_format(asked, "output_format", format));
  if (const auto preview = body.find("preview"); preview != body.end()) {
    if (!preview->is_boolean()) return usage_error("[server.jobs] preview expected true or false");
    asked.preview = *preview;
    body.erase(preview);
  }
  asked.fields = std::move(body);
  return asked;
}

/// One subscriber's view of a job: says what is new since it last looked.
class JobEvents {
 public:
  JobEvents(Service& service, JobPtr job) : service_(service), job_(std::move(job)) {}

  Awaitable<void> run(EventStream& out) {
    for (;;) {
      const std::vector<Event> events = news();
      for (const Event& event : events)
        if (!co_await out.send(event.name, event.data)) co_return;
      if (job_->is_over()) co_return;
      const Clock::time_point before = Clock::now();
      co_await job_->changed(kKeepAlive);
      if (Clock::now() - before >= kKeepAlive && !co_await out.keep_alive()) co_return;
    }
  }

 private:
  struct Event {
    const char* name;
    nlohmann::json data;
  };

  std::vector<Event> news() {
    std::vector<Event> events;
    const Json eta = seconds_or_null(service_.queue().eta(*job_));
    const size_t position = service_.queue().position(*job_);
    if (job_->state == JobState::kQueued && position != position_)
      events.push_back({"queued", {{"position", position}, {"eta_seconds", eta}}});
    position_ = position;
    if (job_->state == JobState::kRunning && (job_->stage != stage_ || job_->step != step_)) {
      const Json preview = job_->preview.empty() ? Json() : Json("data:image/jpeg;base64," + to_base64(job_->preview));
      events.push_back({"progress",
                        {{"stage", job_->stage},
                         {"step", job_->step},
                         {"steps", job_->steps},
                         {"eta_seconds", eta},
                         {"preview", preview}}});
    }
    stage_ = job_->stage;
    step_ = job_->step;
    for (; pictures_ < job_->pictures.size(); ++pictures_)
      events.push_back(
          {"picture",
           {{"index", pictures_}, {"url", picture_url(*job_, pictures_)}, {"seed", job_->pictures[pictures_].seed}}});
    if (job_->state == JobState::kDone) events.push_back({"done", job_json(service_, *job_)});
    if (job_->state == JobState::kFailed) events.push_back({"failed", {{"error", {{"message", job_->error.message}}}}});
    if (job_->state == JobState::kCancelled) events.push_back({"cancelled", nlohmann::json::object()});
    return events;
  }

  Service& service_;
  JobPtr job_;
  size_t position_ = SIZE_MAX, pictures_ = 0;
  std::string stage_;
  int step_ = -1;
};

HttpResponse no_job() {
  return error_response(404, "[server.jobs] there is no such job, or it is forgotten", "id");
}

HttpResponse picture_response(const Job& job, const std::string& number) {
  const Result<int> index = parse_number<int>("picture", number, 0, INT_MAX);
  if (!index || static_cast<size_t>(*index) >= job.pictures.size())
    return error_response(404, "[server.jobs] this picture is not there (yet)");
  return {200,
          "image/" + job.spec.format,
          job.pictures[static_cast<size_t>(*index)].bytes,
          {{"Cache-Control", "private, max-age=86400, immutable"}}};
}

}  // namespace

void add_job_routes(Router& router, Service& service) {
  router.add({"POST", "/api/jobs",
              [&service](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
                Result<Asked> asked = read_job(request.body);
                if (!asked) co_return refusal(asked.error());
                std::variant<JobPtr, HttpResponse> job = co_await service.submit(*std::move(asked));
                if (auto* refused = std::get_if<HttpResponse>(&job)) co_return std::move(*refused);
                co_return json_response(job_json(service, *std::get<JobPtr>(job)), 202);
              },
              false, "Put a picture into the queue"});
  router.add({"GET", "/api/jobs/{}",
              [&service](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
                const JobPtr job = service.queue().find(request.parameters[0]);
                co_return job ? json_response(job_json(service, *job)) : no_job();
              },
              false, "How far a job is"});
  router.add({"DELETE", "/api/jobs/{}",
              [&service](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
                const JobPtr job = service.queue().find(request.parameters[0]);
                if (!job) co_return no_job();
                service.cancel(job);
                while (!job->is_over()) co_await job->changed(kKeepAlive);
                co_return json_response(job_json(service, *job));
              },
              false, "Cancel a job"});
  router.add({"GET", "/api/jobs/{}/events",
              [&service](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
                const JobPtr job = service.queue().find(request.parameters[0]);
                if (!job) co_return no_job();
                HttpResponse response;
                response.events = [&service, job](EventStream& out) -> Awaitable<void> {
                  co_await JobEvents(service, job).run(out);
                };
                co_return response;
              },
              false, "Follow a job (server-sent events)"});
  router.add({"GET", "/api/jobs/{}/images/{}",
              [&service](HttpRequest& request, ClientWatch&) -> Awaitable<HttpResponse> {
                const JobPtr job = service.queue().find(request.parameters[0]);
                co_return job ? picture_response(*job, request.parameters[1]) : no_job();
              },
              false, "A finished picture"});
}

}  // namespace sfumato::server
