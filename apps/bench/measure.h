#pragma once
// One row of a benchmark: what is run, and what came of it.
#include <chrono>
#include <string>
#include <vector>

#include "pipeline/options.h"

namespace sfumato {

enum class Component { kText, kUnet, kVaeDecode, kVaeEncode, kPipeline };
std::string_view component_name(Component component);

struct BenchCase {
  Component component = Component::kUnet;
  RunOptions run;  ///< model, size, threads, precision; for the pipeline the whole request
  int batch = 1;   ///< samples of a network, pictures of the pipeline
};

struct BenchResult {
  std::string model;
  Size size;
  int threads = 0;
  Precision precision = Precision::kF32;
  double compile_seconds = 0;   ///< from the opened model to a program; the pipeline: to its first picture, whole
  std::vector<double> seconds;  ///< of each repeat, in the order run
  double flops = 0;             ///< of one repeat: two a multiply-add, done the direct way
  double peak_flops = 0;        ///< a second, that these threads reach at most (kernels::fma_peak)
  int64_t rss_peak_bytes = 0;   ///< while it ran, weights included
};

double seconds_since(std::chrono::steady_clock::time_point begin);

/// Compiles, runs `warm_up` times without and `repeats` times with the clock.
Result<BenchResult> measure(const BenchCase& bench_case, int warm_up, int repeats);

}  // namespace sfumato
