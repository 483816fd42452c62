#include "server/worker.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "base/strings.h"
#include "image/convert.h"
#include "image/image_io.h"
#include "pipeline/options_json.h"
#include "server/frame.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kPreviewQuality = 80;

class Worker {
 public:
  explicit Worker(int fd) : fd_(fd) {}

  int run() {
    Frame setup;
    if (!read_frame(fd_, setup)) return 0;
    RunOptions run;
    find_option("precision")->set(run, setup.header.at("precision").get<std::string>()).value();
    options_.precision = run.pipeline.precision;
    options_.threads = setup.header.at("threads");
    taesds_ = setup.header.at("taesds");
    models_ = setup.header.at("models");
    const Result<void> loaded = load(setup.header.at("preload"));
    if (!loaded) {
      send("broken", {{"message", loaded.error().message}, {"kind", static_cast<int>(loaded.error().kind)}});
      return static_cast<int>(loaded.error().kind);
    }
    send("ready", Json::object());
    std::thread(&Worker::listen, this).detach();
    for (;;) draw(next());
  }

 private:
  /// The server's words arrive while a picture is drawn. When the server is gone there is nobody to draw for.
  void listen() {
    for (Frame frame; read_frame(fd_, frame);) {
      const std::lock_guard lock(mutex_);
      if (frame.header.at("type") == "cancel")
        cancelled_.insert(frame.header.at("id").get<std::string>());
      else
        waiting_.push_back(std::move(frame));
      arrived_.notify_one();
    }
    _exit(0);
  }

  Frame next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !waiting_.empty(); });
    Frame frame = std::move(waiting_.front());
    waiting_.pop_front();
    return frame;
  }

  bool is_cancelled(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return cancelled_.contains(id);
  }

  /// One model is in memory at a time.
  Result<void> load(const std::string& name) {
    if (pipeline_ && loaded_ == name) return {};
    pipeline_.reset();
    PipelineOptions options = options_;
    options.model = models_.at(name).get<std::string>();
    options.taesd = taesds_.value(name, "");
    pipeline_ = TRY(Pipeline::load(options));
    loaded_ = name;
    return {};
  }

  void send(const char* type, Json header, std::string blob = {}) {
    header["type"] = type;
    if (!write_frame(fd_, {std::move(header), std::move(blob)})) _exit(0);
  }

  void draw(const Frame& frame) {
    const Clock::time_point begin = Clock::now();
    const Result<void> loaded = load(frame.header.at("model"));
    std::vector<std::string> ids;
    std::vector<Request> requests;
    std::string_view pictures = frame.blob;
    for (const Json& job : frame.header.at("jobs")) {
      Result<Request> request = loaded ? read_job(job, pictures) : loaded.error();
      if (!request) {
        fail(job.at("id"), request.error());
        continue;
      }
      ids.push_back(job.at("id"));
      requests.push_back(*std::move(request));
    }
    const auto results = loaded ? pipeline_->generate_together(requests) : std::vector<Result<std::vector<Picture>>>();
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i])
        fail(ids[i], results[i].error());
      else
        send("done", {{"id", ids[i]},
                      {"seconds", std::chrono::duration<double>(Clock::now() - begin).count()},
                      {"warnings", pipeline_->warnings(i)}});
    }
  }

  void fail(const std::string& id, const Error& error) {
    send("failed", {{"id", id}, {"kind", static_cast<int>(error.kind)}, {"message", error.message}});
  }

  /// `pictures` moves on behind the job's.
  Result<Request> read_job(const Json& job, std::string_view& pictures) {
    const auto take = [&](const char* size) {
      const std::string_view bytes = pictures.substr(0, job.at(size).get<size_t>());
      pictures.remove_prefix(bytes.size());
      return bytes;
    };
    const std::string_view init = take("init_bytes"), mask = take("mask_bytes");
    RunOptions run;
    run.request.prompts.clear();
    TRY(set_options(run, job.at("fields")));
    Request request = std::move(run.request);
    if (!init.empty()) request.init_image = std::make_shared<const Image>(TRY(decode_image(bytes_of(init))));
    if (!mask.empty()) {
      Image picture = TRY(decode_image(bytes_of(mask)));
      request.mask =
          std::make_shared<const Image>(job.at("mask_is_alpha") ? transparency(picture) : std::move(picture));
    }
    const std::string id = job.at("id");
    request.on_progress = [this, id, wants_preview = job.at("preview").get<bool>()](const Progress& p) {
      if (is_cancelled(id)) return false;
      send("progress",
           {{"id", id},
            {"stage", stage_name(p.stage)},
            {"step", p.batch * p.steps + p.step},
            {"steps", p.batches * p.steps}},
           wants_preview && !p.denoised.empty() ? preview(p) : std::string());
      return true;
    };
    const ImageFormat format = TRY(format_of(str("x.", job.at("format").get<std::string>())));
    request.on_picture = [this, id, format, quality = job.at("quality").get<int>()](
                             size_t index, const Picture& picture) -> Result<void> {
      send("picture",
           {{"id", id},
            {"index", index},
            {"seed", picture.seed},
            {"parameters", picture.parameters},
            {"width", picture.image.width},
            {"height", picture.image.height}},
           TRY(encode_image(picture.image, format, picture.parameters, quality)));
      return {};
    };
    return request;
  }

  /// The first picture of the batch, small.
  std::string preview(const Progress& progress) {
    const LatentSize& size = progress.latent;
    const Result<Image> image = pipeline_->preview(progress.denoised.first(size.elements()), size);
    if (!image) return "";  // the picture itself goes on
    const Result<std::string> jpeg = encode_image(*image, ImageFormat::kJpeg, "", kPreviewQuality);
    return jpeg ? *jpeg : std::string();
  }

  int fd_;
  PipelineOptions options_;
  Json models_, taesds_;  // folders by the model's name
  std::string loaded_;
  std::unique_ptr<Pipeline> pipeline_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Frame> waiting_;
  std::set<std::string> cancelled_;  // ids that nobody knows any more stay: a few bytes each, and rare
};

}  // namespace

int run_worker(int fd) {
  return Worker(fd).run();
}

}  // namespace sfumato::server
