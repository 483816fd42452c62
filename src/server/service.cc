#include "server/service.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

#include "base/strings.h"
#include "image/image_io.h"
#include "pipeline/options_json.h"
#include "pipeline/plan.h"

namespace sfumato::server {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kLimitMark = "[server.limit] ";

/// "steps" of "[options] --steps expected a number from ...".
std::string field_at_fault(std::string_view message) {
  const size_t begin = message.find("] "), end = message.find(" expected ");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  std::string field(message.substr(begin + 2, end - begin - 2));
  if (field.find(' ') != std::string::npos) return "";
  if (field.starts_with("--")) field.erase(0, 2);
  std::replace(field.begin(), field.end(), '-', '_');
  return field;
}

Result<std::shared_ptr<const Image>> look_into(const std::string& bytes, int64_t most_pixels) {
  if (bytes.empty()) return std::shared_ptr<const Image>();
  return std::make_shared<const Image>(TRY(decode_image(bytes_of(bytes), {.max_pixels = most_pixels})));
}

}  // namespace

Error limit_error(const std::string& message) {
  return usage_error(std::string(kLimitMark) + message);
}

HttpResponse refusal(const Error& error) {
  if (error.message.starts_with(kLimitMark)) return error_response(422, error.message, field_at_fault(error.message));
  return error_response(error, field_at_fault(error.message));
}

bool is_for_requests(const Option& option) {
  return concerns_a_picture(option) && option.value != "FILE";
}

Result<void> set_format(Asked& asked, std::string_view field, const std::string& format) {
  if (format != "png" && format != "jpeg" && format != "webp")
    return usage_error(str("[server.request] ", field, " expected png, jpeg or webp, got \"", printable(format), "\""));
  asked.format = format;
  return {};
}

Service::Service(std::vector<ServedModel> models, RequestLimits limits, JobQueue& queue, Workers& workers)
    : models_(std::move(models)), limits_(limits), queue_(queue), workers_(workers) {
  queue_.on_finish = [this](const Job& job) {
    ++counters_.jobs[std::string(state_name(job.state))];
    counters_.pictures += job.pictures.size();
    counters_.job_seconds += job.seconds();
  };
}

const ServedModel* Service::find_model(const std::string& name) const {
  if (name.empty()) return &models_.front();
  for (const ServedModel& model : models_)
    if (model.name == name) return &model;
  return nullptr;
}

Result<void> Service::check_limits(const Plan& plan, const Request& request) const {
  if (const int64_t pixels = int64_t{plan.size.width} * plan.size.height; pixels > limits_.pixels)
    return limit_error(str("size expected at most ", limits_.pixels, " pixels, got ", pixels));
  if (plan.steps > limits_.steps)
    return limit_error(str("steps expected at most ", limits_.steps, " here, got ", plan.steps));
  if (request.images > limits_.pictures)
    return limit_error(str("batch_count expected at most ", limits_.pictures, " here, got ", request.images));
  return {};
}

Result<JobSpec> Service::make_spec(Asked asked) {
  const ServedModel* served = find_model(asked.model);
  if (!served) {
    std::vector<std::string> names;
    for (const ServedModel& model : models_) names.push_back(model.name);
    return usage_error(
        str("[server.model] model expected one of ", join(names, ", "), ", got \"", printable(asked.model), "\""));
  }
  RunOptions run;
  run.request.prompts.clear();
  for (const auto& [field, value] : asked.fields.items()) {
    const Option* option = find_option(field);
    if (!option || !is_for_requests(*option))
      return usage_error(str("[server.request] the field \"", printable(field), "\" is not known here"));
    TRY(set_option(run, *option, field, value));
  }
  Request& request = run.request;
  if (request.prompts.size() != 1) return usage_error("[server.request] prompt expected one text");
  if (request.prompts[0].size() + request.negative_prompt.value_or("").size() > limits_.prompt_bytes)
    return limit_error(str("prompt expected at most ", limits_.prompt_bytes, " bytes with the negative one"));
  request.init_image = TRY(look_into(asked.init, limits_.pixels * 4));
  request.mask = TRY(look_into(asked.mask, limits_.pixels * 4));
  if (!run.is_seed_given) asked.fields["seed"] = request.seed = random_seed();
  const Plan plan = TRY(make_plan(served->model, request));
  TRY(check_limits(plan, request));

  JobSpec spec;
  spec.model = served->name;
  spec.fields = std::move(asked.fields);
  spec.format = asked.format;
  spec.quality = asked.quality;
  spec.preview = asked.preview;
  spec.init = std::move(asked.init);
  spec.mask = std::move(asked.mask);
  spec.mask_is_alpha = asked.mask_is_alpha;
  spec.pictures = request.images;
  spec.batch_key = batch_key(plan, request);
  spec.batch_size = plan.batch_size;
  // The decoder costs about two network passes.
  const int passes = plan.steps * (plan.guided ? 2 : 1) + 2;
  spec.work = static_cast<double>(request.images) * passes * plan.size.width * plan.size.height;
  return spec;
}

Awaitable<std::variant<JobPtr, HttpResponse>> Service::submit(Asked asked) {
  const auto refuse = [&](HttpResponse response) {
    ++counters_.jobs["refused"];
    return response;
  };
  if (closed_) {
    HttpResponse response = error_response(503, "[server.drain] this server is about to stop", "", "draining");
    response.headers.push_back({"Retry-After", "1"});
    co_return refuse(std::move(response));
  }
  if (queue_.is_full()) {
    HttpResponse response = error_response(429, "[server.queue] the queue is full; try again later", "", "queue_full");
    response.headers.push_back({"Retry-After", std::to_string(queue_.retry_after())});
    co_return refuse(std::move(response));
  }
  std::optional<Result<JobSpec>> made;
  if (const bool has_pictures = !asked.init.empty() || !asked.mask.empty(); has_pictures) {
    const auto make = [&]() -> Awaitable<void> {
      made = make_spec(std::move(asked));
      co_return;
    };
    co_await asio::co_spawn(decoding_, make, asio::use_awaitable);
  } else {
    made = make_spec(std::move(asked));
  }
  if (!*made) co_return refuse(refusal(made->error()));
  ++counters_.jobs["submitted"];
  JobPtr job = queue_.submit(std::move(**made));
  workers_.wake();
  co_return job;
}

Awaitable<void> Service::finish(const JobPtr& job, ClientWatch& client) {
  using namespace asio::experimental::awaitable_operators;
  const auto over = [&job]() -> Awaitable<void> {
    while (!job->is_over()) co_await job->changed(std::chrono::minutes(1));
  };
  co_await (over() || client.closed());
  if (!job->is_over()) cancel(job);
}

void Service::cancel(const JobPtr& job) {
  if (!job->is_over()) workers_.cancel(job);
}

}  // namespace sfumato::server
