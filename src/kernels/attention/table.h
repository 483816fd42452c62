#pragma once
#include <cstdint>

#include "kernels/isa.h"

namespace sfumato::kernels {

/// Keys whose scores are held at a time. Fixed: it decides the order of the sums, hence bits.
constexpr int64_t kKeyBlock = 128;

/// One head's work: `queries` rows, the first of which is number `first` of its sequence, against all keys.
struct AttentionBlock {
  const float *q, *k, *v;
  float* out;
  int64_t q_stride, k_stride, v_stride, out_stride;
  int64_t queries, first, keys, head_size;
  float scale;
  bool causal;
};

/// The rows of the attention family. Queries lie across the lanes of vectors, `step` of them in a register tile.
struct AttentionRow {
  Isa isa;
  int64_t step;
  /// work: attention_work(step, ...) floats, aligned to 64.
  void (*run)(const AttentionBlock& block, float* work);
};

/// Scores and 3 running values a query for one tile; for each tile the queries and sums.
inline int64_t attention_work(int64_t step, int64_t queries, int64_t head_size) {
  const int64_t tiles = (queries + step - 1) / step;
  return step * kKeyBlock + tiles * step * (2 * head_size + 3);
}

extern const AttentionRow kAttentionScalar, kAttentionAvx2, kAttentionAvx512;

}  // namespace sfumato::kernels
