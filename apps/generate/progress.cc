#include "apps/generate/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/terminal.h"
#include "base/cpu.h"
#include "base/strings.h"

namespace sfumato {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

ProgressReporter::ProgressReporter(const RunOptions& run, const Pipeline& pipeline)
    : pipeline_(pipeline),
      seed_(run.request.seed),
      json_(run.json),
      quiet_(run.quiet),
      terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressReporter::start() {
  started_ = true;
  const ModelInfo& model = pipeline_.info();
  const std::string precision(precision_name(pipeline_.precision()));
  if (json_)
    print_event({{"event", "start"},
                 {"model", model.name},
                 {"family", model.family},
                 {"precision", precision},
                 {"isa", isa_name(active_isa())},
                 {"seed", seed_}});
  else if (!quiet_)
    std::fprintf(stderr, "%s (%s), %s, seed %u\n", model.name.c_str(), model.family.c_str(), precision.c_str(), seed_);
}

void ProgressReporter::show(const Progress& p) {
  if (!started_) start();
  const std::string_view stage = stage_name(p.stage);
  if (json_)
    print_event({{"event", "progress"},
                 {"stage", stage},
                 {"batch", p.batch},
                 {"batches", p.batches},
                 {"step", p.step},
                 {"steps", p.steps},
                 {"seconds", seconds_since(begin_)}});
  else if (!quiet_ && terminal_)
    draw(p, stage);
}

void ProgressReporter::draw(const Progress& p, std::string_view stage) {
  std::string line = p.batches > 1 ? str("batch ", p.batch + 1, "/", p.batches, " ") : "";
  if (p.stage == Progress::Stage::kSample) {
    const double step_seconds = seconds_since(sampling_begin_) / std::max(1, p.step);
    char speed[32];
    std::snprintf(speed, sizeof speed, step_seconds < 1 ? "%.2f it/s" : "%.2f s/it",
                  step_seconds < 1 ? 1 / std::max(step_seconds, 1e-9) : step_seconds);
    line += str(bar(static_cast<size_t>(p.step), static_cast<size_t>(p.steps)), " ", p.step, "/", p.steps, "  ", speed,
                "  ", clock_text(step_seconds * (p.steps - p.step)), " left");
  } else {
    line += str(stage, " ...");
    sampling_begin_ = Clock::now();
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
  bar_open_ = true;
}

void ProgressReporter::finish(const std::vector<std::string>& warnings) {
  if (bar_open_) std::fputs("\r\033[K", stderr);
  bar_open_ = false;
  for (const std::string& warning : warnings)
    if (json_)
      print_event({{"event", "warning"}, {"message", warning}});
    else if (!quiet_)
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

double ProgressReporter::seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace sfumato
