#pragma once
// What a person or a log sees of a batch: a bar on a terminal, lines elsewhere, or JSON events.
#include <chrono>
#include <filesystem>
#include <optional>

#include "apps/batch/shard.h"
#include "pipeline/options.h"

namespace sfumato {

class BatchReport {
 public:
  struct Work {
    size_t manifest, ours, missing;  ///< pictures: in the manifest, of this process, of those not there yet
  };
  BatchReport(const RunOptions& run, const Shard& shard, const Work& work);
  void drawn(size_t index, const std::filesystem::path& name);
  void failed(size_t index, const Error& error);
  void end();
  const std::optional<Error>& first_failure() const { return first_failure_; }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  void show_bar();

  const bool json_, quiet_, terminal_;
  const Work work_;
  const Clock::time_point begin_ = Clock::now();
  size_t drawn_ = 0, failed_ = 0;
  std::optional<Error> first_failure_;
};

}  // namespace sfumato
