#include "kernels/attention/attention.h"

#include <omp.h>

#include <algorithm>

#include "kernels/attention/table.h"

namespace sfumato::kernels {
namespace {

const AttentionRow& table() {
  static constexpr const AttentionRow* kRows[] = {&kAttentionScalar, &kAttentionAvx2, &kAttentionAvx512};
  return select(kRows);
}

/// Queries a thread takes through a head's keys together: as many as keep their queries and sums in half of a small
/// second-level cache, but few enough for every thread to have work. Changes no bits.
int64_t queries_of_block(const AttentionArgs& a, int64_t step) {
  constexpr int64_t kCacheFloats = 32 * 1024;
  const int64_t fitting = std::max<int64_t>(1, kCacheFloats / (2 * a.head_size * step));
  const int64_t tiles = (a.queries + step - 1) / step;
  const int64_t sharing = std::max<int64_t>(1, a.batch * a.heads * tiles / (4 * omp_get_max_threads()));
  return step * std::min({fitting, tiles, sharing});
}

int64_t work_floats(const AttentionArgs& a, int64_t step) {
  return (attention_work(step, queries_of_block(a, step), a.head_size) + 15) / 16 * 16;
}

}  // namespace

size_t attention_scratch(const AttentionArgs& a) {
  return static_cast<size_t>(omp_get_max_threads() * work_floats(a, table().step)) * sizeof(float);
}

void attention(const AttentionArgs& a, void* scratch) {
  const AttentionRow& row = table();
  const int64_t taken = queries_of_block(a, row.step), work = work_floats(a, row.step);
  const int64_t blocks = (a.queries + taken - 1) / taken;
  const bool small = a.batch * a.heads * a.queries * a.keys * a.head_size < 65536;  // not worth waking other threads
#pragma omp parallel for schedule(dynamic, 1) if (!small)
  for (int64_t i = 0; i < a.batch * a.heads * blocks; ++i) {
    const int64_t b = i / blocks / a.heads, column = i / blocks % a.heads * a.head_size, first = i % blocks * taken;
    const AttentionBlock block = {
        .q = a.q + (b * a.queries + first) * a.q_stride + column,
        .k = a.k + b * a.keys * a.k_stride + column,
        .v = a.v + b * a.keys * a.v_stride + column,
        .out = a.out + (b * a.queries + first) * a.out_stride + column,
        .q_stride = a.q_stride,
        .k_stride = a.k_stride,
        .v_stride = a.v_stride,
        .out_stride = a.out_stride,
        .queries = std::min(taken, a.queries - first),
        .first = first,
        .keys = a.keys,
        .head_size = a.head_size,
        .scale = a.scale,
        .causal = a.causal,
    };
    row.run(block, static_cast<float*>(scratch) + omp_get_thread_num() * work);
  }
}

}  // namespace sfumato::kernels
