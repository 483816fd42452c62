#pragma once
#include <cstdint>

#include "kernels/isa.h"

namespace sfumato::kernels {

/// One head's work: `queries` rows, the first of which is number `first` of its sequence, against all keys.
struct AttentionBlock {
  const float *q, *k, *v;
  const uint16_t *packed_keys, *packed_values;  // for rows that pack
  float* out;
  int64_t q_stride, k_stride, v_stride, out_stride;
  int64_t queries, first, keys, head_size;
  float scale;
  bool causal;
};

/// The rows of the attention family.
struct AttentionRow {
  Isa isa;
  int64_t step;  // queries of one register tile
  /// Floats of `work`, aligned to 64, that run() needs for a block of `queries`.
  int64_t (*work_floats)(int64_t queries, int64_t head_size);
  void (*run)(const AttentionBlock& block, float* work);
  /// For rows that take a head's keys and values packed in bfloat16, else null: elements, a multiple of 32, and how.
  int64_t (*packed_keys)(int64_t keys, int64_t head_size);
  int64_t (*packed_values)(int64_t keys, int64_t head_size);
  void (*pack_keys)(const float* k, int64_t stride, int64_t keys, int64_t head_size, uint16_t* out);
  void (*pack_values)(const float* v, int64_t stride, int64_t keys, int64_t head_size, uint16_t* out);
};

extern const AttentionRow kAttentionScalar, kAttentionAvx2, kAttentionAvx512, kAttentionAvx512Bf16, kAttentionAmx;

}  // namespace sfumato::kernels
