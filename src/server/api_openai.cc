// /v1/images: as OpenAI's clients speak it, with more fields at the top level.
#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <ctime>

#include "base/strings.h"
#include "pipeline/options_json.h"
#include "server/base64.h"
#include "server/multipart.h"
#include "server/router.h"
#include "server/service.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::json;

struct ImagesRequest {
  Asked asked;
  bool as_url = false;
  bool stream = false;
  int partial_images = 0;
};

// OpenAI's fields that change nothing here, with the values that say so.
struct Neutral {
  const char* field;
  std::vector<std::string> values;  ///< empty: any
};
const std::vector<Neutral>& neutral_fields() {
  static const std::vector<Neutral> fields = {{"user", {}},           {"quality", {}},
                                              {"style", {}},          {"moderation", {}},
                                              {"input_fidelity", {}}, {"background", {"auto", "opaque"}}};
  return fields;
}

Error expected(const std::string& field, const char* what) {
  return usage_error(str("[server.images] ", field, " expected ", what));
}

Result<int> whole_number(const std::string& field, const Json& value, int low, int high) {
  if (value.is_number_integer() && value >= low && value <= high) return value.get<int>();
  return usage_error(str("[server.images] ", field, " expected a whole number from ", low, " to ", high, ", got ",
                         printable(value.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

Result<std::string> text_of(const std::string& field, const Json& value) {
  if (!value.is_string()) return expected(field, "a text");
  return value.get<std::string>();
}

/// Fields that are not of the option list, or by another name.
Result<bool> read_own_field(const std::string& field, const Json& value, ImagesRequest& request) {
  Asked& asked = request.asked;
  if (field == "model") {
    asked.model = TRY(text_of(field, value));
  } else if (field == "n") {
    asked.fields["batch_count"] = TRY(whole_number(field, value, 1, 10));
  } else if (field == "rng_seed") {
    asked.fields["seed"] = value;
  } else if (field == "size") {
    if (const std::string size = TRY(text_of(field, value)); size != "auto") asked.fields["size"] = size;
  } else if (field == "response_format") {
    const std::string format = TRY(text_of(field, value));
    if (format != "url" && format != "b64_json") return expected(field, "url or b64_json");
    request.as_url = format == "url";
  } else if (field == "output_format") {
    TRY(set_format(asked, field, TRY(text_of(field, value))));
  } else if (field == "output_compression") {
    asked.quality = std::max(1, TRY(whole_number(field, value, 0, 100)));
  } else if (field == "stream") {
    if (!value.is_boolean()) return expected(field, "true or false");
    request.stream = value;
  } else if (field == "partial_images") {
    request.partial_images = TRY(whole_number(field, value, 0, 3));
  } else if (field == "loras") {
    if (!value.is_array() || !value.empty()) return expected(field, "an empty list: LoRA is not supported yet");
  } else {
    return false;
  }
  return true;
}

Result<bool> is_neutral(const std::string& field, const Json& value) {
  for (const Neutral& neutral : neutral_fields()) {
    if (field != neutral.field) continue;
    const std::string text = TRY(text_of(field, value));
    if (neutral.values.empty() || std::find(neutral.values.begin(), neutral.values.end(), text) != neutral.values.end())
      return true;
    return usage_error(str("[server.images] ", field, " expected ", join(neutral.values, " or "), ", got \"",
                           printable(text), "\": nothing else is supported"));
  }
  return false;
}

Result<void> read_field(const std::string& field, const Json& value, ImagesRequest& request) {
  if (value.is_null() || TRY(read_own_field(field, value, request)) || TRY(is_neutral(field, value))) return {};
  request.asked.fields[field] = value;
  return {};
}

Result<ImagesRequest> read_generation(const HttpRequest& http) {
  const Json body = TRY(parse_json(http.body));
  if (!body.is_object()) return usage_error("[server.images] expected a JSON object with a prompt");
  ImagesRequest request;
  for (const auto& [field, value] : body.items()) TRY(read_field(field, value, request));
  return request;
}

/// A form's texts are JSON where they are numbers, true or false.
Json form_value(const std::string& field, std::string_view text) {
  const Option* option = find_option(field);
  const bool is_text = option && option->value != "N" && option->value != "X";
  const Json value = is_text ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_number() || value.is_boolean() ? value : Json(std::string(text));
}

Result<ImagesRequest> read_edit(const HttpRequest& http) {
  ImagesRequest request;
  request.asked.mask_is_alpha = true;
  for (const FormPart& part : TRY(parse_form(http.header("content-type"), http.body))) {
    const std::string_view body = part.body;
    if (part.name == "image" || part.name == "image[]") {
      if (!request.asked.init.empty()) return expected("image", "one picture: several are not supported");
      request.asked.init = body;
    } else if (part.name == "mask") {
      request.asked.mask = body;
    } else {
      const Json text = std::string(body);
      try {
        (void)text.dump();  // a text that is no UTF-8 throws
      } catch (const Json::exception&) {
        return expected(printable(part.name), "UTF-8");
      }
      TRY(read_field(part.name, form_value(part.name, body), request));
    }
  }
  if (request.asked.init.empty()) return expected("image", "a picture");
  return request;
}

nlohmann::ordered_json picture_json(const HttpRequest& http, const Job& job, size_t index, bool as_url) {
  nlohmann::ordered_json out;
  if (as_url)
    out["url"] = str("http://", http.header("host"), "/api/jobs/", job.id, "/images/", index);
  else
    out["b64_json"] = to_base64(job.pictures[index].bytes);
  out["seed"] = job.pictures[index].seed;
  return out;
}

nlohmann::ordered_json answer(const HttpRequest& http, const Job& job, bool as_url) {
  nlohmann::ordered_json data = nlohmann::ordered_json::array();
  for (size_t i = 0; i < job.pictures.size(); ++i) data.push_back(picture_json(http, job, i, as_url));
  const JobPicture& first = job.pictures.front();
  return {{"created", std::time(nullptr)},
          {"data", data},
          {"size", str(first.width, "x", first.height)},
          {"output_format", job.spec.format}};
}

Json model_json(const ServedModel& model) {
  return {{"id", model.name}, {"object", "model"}, {"created", 0}, {"owned_by", "sfumato"}};
}

HttpResponse failure(const Job& job) {
  // Also while it is being stopped for a client that is gone.
  if (job.state != JobState::kFailed) return error_response(499, "[server.images] cancelled", "", "cancelled");
  return refusal(job.error);
}

Json partial_event(const std::string& type, const Job& job, int index) {
  return {{"type", type},
          {"b64_json", to_base64(job.preview)},
          {"partial_image_index", index},
          {"created_at", std::time(nullptr)},
          {"output_format", "jpeg"}};
}

Json completed_event(const std::string& type, const Job& job, const JobPicture& picture) {
  return {{"type", type},
          {"b64_json", to_base64(picture.bytes)},
          {"created_at", std::time(nullptr)},
          {"size", str(picture.width, "x", picture.height)},
          {"seed", picture.seed},
          {"output_format", job.spec.format}};
}

/// Previews spread over the steps, then the pictures.
Awaitable<void> stream_events(EventStream& out, JobPtr job, int partial_images, std::string prefix) {
  constexpr std::chrono::seconds kKeepAlive{10};
  const std::string partial = prefix + ".partial_image", completed = prefix + ".completed";
  for (int sent = 0; !job->is_over();) {
    const Clock::time_point before = Clock::now();
    co_await job->changed(kKeepAlive);
    if (Clock::now() - before >= kKeepAlive && !co_await out.keep_alive()) co_return;
    const bool is_due =
        job->steps > 0 && sent < partial_images && job->step * (partial_images + 1) >= (sent + 1) * job->steps;
    if (!is_due || job->preview.empty()) continue;
    const Json event = partial_event(partial, *job, sent);
    if (!co_await out.send(partial, event)) co_return;
    ++sent;
  }
  if (job->state != JobState::kDone) {
    const Json event = Json::parse(failure(*job).body);
    co_await out.send("error", event);
    co_return;
  }
  for (const JobPicture& picture : job->pictures) {
    const Json event = completed_event(completed, *job, picture);
    if (!co_await out.send(completed, event)) co_return;
  }
}

Handler images_handler(Service& service, Result<ImagesRequest> (*read)(const HttpRequest&), const char* prefix) {
  return [&service, read, prefix](HttpRequest& http, ClientWatch& client) -> Awaitable<HttpResponse> {
    Result<ImagesRequest> request = read(http);
    if (!request) co_return refusal(request.error());
    request->asked.preview = request->stream && request->partial_images > 0;
    std::variant<JobPtr, HttpResponse> submitted = co_await service.submit(std::move(request->asked));
    if (auto* refused = std::get_if<HttpResponse>(&submitted)) co_return std::move(*refused);
    const JobPtr job = std::get<JobPtr>(submitted);
    if (request->stream) {
      HttpResponse response;
      response.events = [&service, &client, job, partial_images = request->partial_images,
                         prefix](EventStream& out) -> Awaitable<void> {
        using namespace boost::asio::experimental::awaitable_operators;
        co_await (stream_events(out, job, partial_images, prefix) || client.closed());
        service.cancel(job);  // if it is not over
      };
      co_return response;
    }
    co_await service.finish(job, client);
    if (job->state != JobState::kDone) co_return failure(*job);
    co_return json_response(answer(http, *job, request->as_url));
  };
}

}  // namespace

void add_openai_routes(Router& router, Service& service) {
  router.add({"POST", "/v1/images/generations", images_handler(service, read_generation, "image_generation"), false,
              "Draw (OpenAI)"});
  router.add({"POST", "/v1/images/edits", images_handler(service, read_edit, "image_edit"), false,
              "Draw from a picture (OpenAI, multipart)"});
  router.add({"GET", "/v1/models",
              [&service](HttpRequest&, ClientWatch&) -> Awaitable<HttpResponse> {
                Json list = Json::array();
                for (const ServedModel& model : service.models()) list.push_back(model_json(model));
                co_return json_response({{"object", "list"}, {"data", list}});
              },
              false, "The models (OpenAI)"});
  router.add({"GET", "/v1/models/{}",
              [&service](HttpRequest& http, ClientWatch&) -> Awaitable<HttpResponse> {
                if (const ServedModel* model = service.find_model(http.parameters[0]))
                  co_return json_response(model_json(*model));
                co_return error_response(404, "[server.model] there is no such model", "model", "model_not_found");
              },
              false, "One model (OpenAI)"});
}

}  // namespace sfumato::server
