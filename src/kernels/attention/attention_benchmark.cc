// Attention at the shapes of Stable Diffusion. `GFLOP/s` counts 4 batch heads S T D for the two products.
#include "kernels/attention/attention.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"

namespace sfumato::kernels {
namespace {

void run(benchmark::State& state, AttentionPrecision precision) {
  AttentionArgs a;
  a.queries = state.range(0), a.keys = state.range(1), a.heads = state.range(2), a.head_size = state.range(3);
  a.causal = state.range(4) != 0;
  a.precision = precision;
  a.scale = 1 / std::sqrt(static_cast<float>(a.head_size));
  a.q_stride = a.k_stride = a.v_stride = a.out_stride = a.heads * a.head_size;
  const auto floats = [&](int64_t tokens) {
    std::vector<float> x(static_cast<size_t>(tokens * a.q_stride));
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 8191));
    return x;
  };
  const std::vector<float> q = floats(a.queries), k = floats(a.keys), v = floats(a.keys);
  std::vector<float> out(q.size());
  a.q = q.data(), a.k = k.data(), a.v = v.data(), a.out = out.data();
  const auto scratch = aligned_array<std::byte>(attention_scratch(a));
  CHECK(scratch != nullptr);
  for (auto _ : state) attention(a, scratch.get());
  const double operations = 4.0 * static_cast<double>(a.heads * a.queries * a.keys * a.head_size);
  state.counters["GFLOP/s"] = benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void attention_f32(benchmark::State& state) {
  run(state, AttentionPrecision::kF32);
}
void attention_bf16(benchmark::State& state) {
  run(state, AttentionPrecision::kBF16);
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"S", "T", "heads", "D", "causal"})->Unit(benchmark::kMillisecond)->UseRealTime();
  b->Args({4096, 4096, 8, 40, 0});  // SD1.5, 512x512: self-attention by resolution
  b->Args({1024, 1024, 8, 80, 0});
  b->Args({256, 256, 8, 160, 0});
  b->Args({64, 64, 8, 160, 0});
  b->Args({4096, 77, 8, 40, 0});  // and cross-attention
  b->Args({1024, 77, 8, 80, 0});
  b->Args({4096, 4096, 10, 64, 0});  // SDXL, 1024x1024
  b->Args({1024, 1024, 20, 64, 0});
  b->Args({4096, 77, 10, 64, 0});
  b->Args({4096, 4096, 1, 512, 0});  // the autoencoder's middle block at 512x512
  b->Args({77, 77, 12, 64, 1});      // CLIP-L
}
BENCHMARK(attention_f32)->Apply(shapes);
BENCHMARK(attention_bf16)->Apply(shapes);

}  // namespace
}  // namespace sfumato::kernels
