#include "server/worker.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/strings.h"
#include "image/convert.h"
#include "image/image_io.h"
#include "pipeline/options_json.h"
#include "pipeline/preview.h"
#include "server/frame.h"

namespace sfumato::server {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kStages[] = {"text", "encode", "sample", "decode"};  // by Progress::Stage
constexpr int kPreviewQuality = 80;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class Worker {
 public:
  explicit Worker(int fd) : fd_(fd) {}

  int run() {
    Frame setup;
    if (!read_frame(fd_, setup)) return 0;
    options_.threads = setup.header.at("threads");
    find_option("precision")->set(run_defaults_, setup.header.at("precision").get<std::string>()).value();
    options_.precision = run_defaults_.pipeline.precision;
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
        cancelled_ = frame.header.at("id");
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
    return cancelled_ == id;
  }

  /// One model is in memory at a time.
  Result<void> load(const std::string& name) {
    if (pipeline_ && loaded_ == name) return {};
    pipeline_.reset();
    PipelineOptions options = options_;
    options.model = models_.at(name).get<std::string>();
    pipeline_ = TRY(Pipeline::load(options));
    loaded_ = name;
    return {};
  }

  void send(const char* type, Json header, std::string blob = {}) {
    header["type"] = type;
    if (!write_frame(fd_, {std::move(header), std::move(blob)})) _exit(0);
  }

  void draw(const Frame& frame) {
    const std::string id = frame.header.at("id");
    const Clock::time_point begin = Clock::now();
    Result<void> done = generate(frame, id);
    if (!done)
      return send("failed",
                  {{"id", id}, {"kind", static_cast<int>(done.error().kind)}, {"message", done.error().message}});
    send("done", {{"id", id},
                  {"seconds", std::chrono::duration<double>(Clock::now() - begin).count()},
                  {"warnings", pipeline_->warnings()}});
  }

  Result<void> generate(const Frame& frame, const std::string& id) {
    const Json& header = frame.header;
    TRY(load(header.at("model")));
    RunOptions run;
    run.request.prompts.clear();
    TRY(set_options(run, header.at("fields")));
    Request& request = run.request;
    const size_t init_bytes = header.at("init_bytes"), mask_bytes = header.at("mask_bytes");
    if (init_bytes > 0)
      request.init_image = std::make_shared<const Image>(
          TRY(decode_image(bytes_of(std::string_view(frame.blob).substr(0, init_bytes)))));
    if (mask_bytes > 0) {
      Image mask = TRY(decode_image(bytes_of(std::string_view(frame.blob).substr(init_bytes))));
      request.mask = std::make_shared<const Image>(header.at("mask_is_alpha") ? transparency(mask) : std::move(mask));
    }
    const bool wants_preview = header.at("preview");
    request.on_progress = [&](const Progress& p) {
      if (is_cancelled(id)) return false;
      send("progress",
           {{"id", id},
            {"stage", kStages[static_cast<int>(p.stage)]},
            {"step", p.batch * p.steps + p.step},
            {"steps", p.batches * p.steps}},
           wants_preview && !p.denoised.empty() ? preview(p) : std::string());
      return true;
    };
    const ImageFormat format = TRY(format_of(str("x.", header.at("format").get<std::string>())));
    request.on_picture = [&](size_t index, const Picture& picture) -> Result<void> {
      send("picture",
           {{"id", id},
            {"index", index},
            {"seed", picture.seed},
            {"parameters", picture.parameters},
            {"width", picture.image.width},
            {"height", picture.image.height}},
           TRY(encode_image(picture.image, format, picture.parameters, header.at("quality"))));
      return {};
    };
    TRY(pipeline_->generate(request));
    return {};
  }

  /// The first picture of the batch, small.
  std::string preview(const Progress& progress) const {
    const LatentSize& size = progress.latent;
    const Image image = preview_of(pipeline_->model(), progress.denoised.first(size.elements()), size);
    const Result<std::string> jpeg = encode_image(image, ImageFormat::kJpeg, "", kPreviewQuality);
    return jpeg ? *jpeg : std::string();
  }

  int fd_;
  RunOptions run_defaults_;
  PipelineOptions options_;
  Json models_;
  std::string loaded_;
  std::unique_ptr<Pipeline> pipeline_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Frame> waiting_;
  std::string cancelled_;
};

}  // namespace

int run_worker(int fd) {
  return Worker(fd).run();
}

}  // namespace sfumato::server
