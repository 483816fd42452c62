#include "apps/batch/report.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/terminal.h"
#include "base/strings.h"

namespace sfumato {

using Json = nlohmann::ordered_json;

BatchReport::BatchReport(const RunOptions& run, const Shard& shard, const Work& work)
    : json_(run.json), quiet_(run.quiet), terminal_(isatty(STDERR_FILENO) == 1), work_(work) {
  if (json_)
    print_event({{"event", "start"},
                 {"pictures", work.manifest},
                 {"shard_index", shard.index},
                 {"shard_count", shard.count},
                 {"ours", work.ours},
                 {"missing", work.missing}});
  else if (!quiet_)
    std::fprintf(stderr, "%zu pictures%s, %zu to draw\n", work.manifest,
                 shard.source.empty() ? ""
                                      : str(", ", work.ours, " of them here: shard ", shard.index, " of ", shard.count,
                                            " (", shard.source, ")")
                                            .c_str(),
                 work.missing);
}

void BatchReport::drawn(size_t index, const std::filesystem::path& name) {
  ++drawn_;
  if (json_)
    print_event({{"event", "picture"}, {"index", index}, {"file", name.string()}, {"seconds", seconds()}});
  else if (!quiet_ && terminal_)
    show_bar();
  else if (!quiet_)
    std::fprintf(stderr, "%s (%zu of %zu, %.1f s)\n", name.c_str(), drawn_ + failed_, work_.missing, seconds());
}

void BatchReport::failed(size_t index, const Error& error) {
  ++failed_;
  if (!first_failure_) first_failure_ = error;
  if (json_)
    print_event({{"event", "failed"}, {"index", index}, {"message", error.message}});
  else
    std::fprintf(stderr, "%spicture %zu: %s\n", terminal_ ? "\r\033[K" : "", index, error.message.c_str());
}

void BatchReport::show_bar() {
  const double each = seconds() / static_cast<double>(drawn_ + failed_);
  const size_t done = drawn_ + failed_;
  std::fprintf(stderr, "\r\033[K%s %zu/%zu  %.2f s a picture  %s left", bar(done, work_.missing).c_str(), done,
               work_.missing, each, clock_text(each * static_cast<double>(work_.missing - done)).c_str());
}

void BatchReport::end() {
  const double minutes = seconds() / 60;
  const double rate = drawn_ > 0 ? static_cast<double>(drawn_) / minutes : 0;
  if (json_)
    print_event({{"event", "end"},
                 {"drawn", drawn_},
                 {"there_before", work_.ours - work_.missing},
                 {"failed", failed_},
                 {"seconds", seconds()},
                 {"pictures_per_minute", rate}});
  else if (!quiet_)
    std::fprintf(stderr, "%s%zu drawn, %zu were there, %zu failed; %.1f pictures a minute\n",
                 terminal_ ? "\r\033[K" : "", drawn_, work_.ours - work_.missing, failed_, rate);
}

}  // namespace sfumato
