#pragma once
// For benchmarks that run a kernel and oneDNN in turn.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"
#include "base/cpu.h"

namespace sfumato::kernels {

using dnnl::memory;
inline constexpr auto kFloat = memory::data_type::f32;

/// oneDNN on the instruction set that our kernels use (SFUMATO_MAX_ISA).
inline dnnl::engine& engine() {
  static dnnl::engine cpu = [] {
    constexpr dnnl::cpu_isa kLimits[] = {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core_vnni,
                                         dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::all};
    dnnl::set_max_cpu_isa(kLimits[static_cast<int>(active_isa())]);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return cpu;
}

inline std::vector<float> some_floats(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 8191));
  return x;
}

/// A primitive and its memory; the weights, in its own order, are zeros.
class OneDnn {
 public:
  struct Bound {
    memory::desc desc;
    float* data;
  };
  OneDnn(dnnl::primitive primitive, Bound x, const memory::desc& weights, Bound bias, Bound out)
      : primitive_(std::move(primitive)), weights_(weights.get_size() / sizeof(float)) {
    args_ = {{DNNL_ARG_SRC, memory(x.desc, engine(), x.data)},
             {DNNL_ARG_WEIGHTS, memory(weights, engine(), weights_.data())},
             {DNNL_ARG_BIAS, memory(bias.desc, engine(), bias.data)},
             {DNNL_ARG_DST, memory(out.desc, engine(), out.data)}};
  }
  void operator()() const {
    dnnl::stream stream(engine());
    primitive_.execute(stream, args_);
    stream.wait();
  }

 private:
  dnnl::primitive primitive_;
  std::vector<float> weights_;
  std::unordered_map<int, memory> args_;
};

template <class Run>
double seconds(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class Own>
void compare(benchmark::State& state, double operations, const Own& own, const OneDnn& other) {
  own(), other();
  double own_least = INFINITY, other_least = INFINITY;
  for (auto _ : state) {
    const double taken = seconds(own);
    state.SetIterationTime(taken);
    own_least = std::min(own_least, taken), other_least = std::min(other_least, seconds(other));
  }
  state.counters["GFLOP/s"] = operations / own_least * 1e-9;
  state.counters["oneDNN"] = operations / other_least * 1e-9;
  state.counters["ratio"] = other_least / own_least;
}

}  // namespace sfumato::kernels
