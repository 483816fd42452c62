#pragma once
// What a person sees while waiting: a bar on a terminal, lines elsewhere, or JSON events.
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/options.h"

namespace sfumato {

class ProgressReporter {
 public:
  ProgressReporter(const RunOptions& run, const Pipeline& pipeline);
  /// The first call, when the request has been found good and the work begins, also says what is drawn with what.
  void show(const Progress& progress);
  /// Ends the bar and prints the warnings.
  void finish(const std::vector<std::string>& warnings);
  void written(const std::filesystem::path& path, const Picture& picture);

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point begin);
  void start();
  void draw(const Progress& progress, std::string_view stage);

  const Pipeline& pipeline_;
  const uint32_t seed_;
  const bool json_, quiet_, terminal_;
  bool started_ = false, bar_open_ = false;
  Clock::time_point begin_ = Clock::now(), sampling_begin_ = begin_;
};

}  // namespace sfumato
