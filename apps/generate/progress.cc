#include "apps/generate/progress.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/strings.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string clock_text(double seconds) {
  char text[32];
  const auto whole = static_cast<long>(seconds + 0.5);
  std::snprintf(text, sizeof text, whole >= 3600 ? "%ld:%02ld:%02ld" : "%.0ld%02ld:%02ld",
                whole >= 3600 ? whole / 3600 : 0, whole / 60 % 60, whole % 60);
  return text;
}

void print_event(const Json& event) {
  std::printf("%s\n", event.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

constexpr const char* kStages[] = {"text", "encode", "sample", "decode"};

}  // namespace

ProgressReporter::ProgressReporter(const RunOptions& run, const Pipeline& pipeline)
    : json_(run.json), quiet_(run.quiet), terminal_(isatty(2) == 1) {
  const ModelInfo& model = pipeline.info();
  if (json_)
    print_event({{"event", "start"},
                 {"model", model.name},
                 {"family", model.family},
                 {"seed", run.request.seed},
                 {"precision", precision_name(pipeline.precision())},
                 {"isa", isa_name(active_isa())}});
  else if (!quiet_)
    std::fprintf(stderr, "%s (%s), %s, seed %u\n", model.name.c_str(), model.family.c_str(),
                 std::string(precision_name(pipeline.precision())).c_str(), run.request.seed);
}

void ProgressReporter::show(const Progress& p) {
  const char* stage = kStages[static_cast<int>(p.stage)];
  if (json_) {
    print_event({{"event", "progress"},
                 {"stage", stage},
                 {"batch", p.batch},
                 {"batches", p.batches},
                 {"step", p.step},
                 {"steps", p.steps},
                 {"seconds", seconds_since(begin_)}});
    return;
  }
  if (quiet_ || !terminal_) return;
  const std::string batch = p.batches > 1 ? str("batch ", p.batch + 1, "/", p.batches, " ") : "";
  if (p.stage != Progress::Stage::kSample) {
    std::fprintf(stderr, "\r\033[K%s%s ...", batch.c_str(), stage);
    sampling_begin_ = Clock::now();
  } else {
    constexpr int kWidth = 30;
    const int filled = p.steps > 0 ? kWidth * p.step / p.steps : 0;
    const double per_step = seconds_since(sampling_begin_) / std::max(1, p.step);
    std::fprintf(stderr, "\r\033[K%s[%s%s] %d/%d  %.2f s/step  %s left", batch.c_str(),
                 std::string(static_cast<size_t>(filled), '#').c_str(),
                 std::string(static_cast<size_t>(kWidth - filled), '.').c_str(), p.step, p.steps, per_step,
                 clock_text(per_step * (p.steps - p.step)).c_str());
  }
  std::fflush(stderr);
  bar_open_ = true;
}

void ProgressReporter::finish(const std::vector<std::string>& warnings) {
  if (bar_open_) std::fputs("\r\033[K", stderr);
  bar_open_ = false;
  for (const std::string& warning : warnings)
    if (json_)
      print_event({{"event", "warning"}, {"message", warning}});
    else
      std::fprintf(stderr, "note: %s\n", warning.c_str());
}

void ProgressReporter::written(const std::filesystem::path& path, const Picture& picture) {
  if (json_)
    print_event({{"event", "picture"},
                 {"file", path.string()},
                 {"seed", picture.seed},
                 {"prompt", picture.prompt},
                 {"seconds", seconds_since(begin_)}});
  else if (!quiet_)
    std::fprintf(stderr, "%s (seed %u, %.1f s)\n", path.c_str(), picture.seed, seconds_since(begin_));
}

}  // namespace sfumato
