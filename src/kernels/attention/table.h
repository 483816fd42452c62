#pragma once
#include <cstdint>

#include "kernels/isa.h"

namespace sfumato::kernels {

/// Keys are taken kKeyBlock at a time: small enough for their K and V rows to stay in the second-level cache.
constexpr int64_t kKeyBlock = 128;
/// Queries that go through a key block together.
constexpr int64_t kQueryBlock = 96;

/// The rows of the attention family. Heads are padded to `padded(head_size)` columns with zeros.
struct AttentionRow {
  Isa isa;
  int64_t lanes;
  /// K rows -> [blocks][head_size][kKeyBlock], missing keys zero; V rows -> [blocks*kKeyBlock][padded].
  void (*pack_keys)(const float* k, int64_t stride, int64_t keys, int64_t head_size, float* out);
  void (*pack_values)(const float* v, int64_t stride, int64_t keys, int64_t head_size, int64_t padded, float* out);
  /// Up to kQueryBlock queries, the first of which is number `first`, against all keys. work: query_block_work()
  /// floats.
  void (*query_block)(const float* q, int64_t q_stride, int64_t queries, int64_t first, const float* packed_keys,
                      const float* packed_values, int64_t keys, int64_t head_size, int64_t padded, float scale,
                      bool causal, float* out, int64_t out_stride, float* work);
};

/// Scores of six queries; sums, largest scores and totals of a query block; the scaled queries of six rows.
inline int64_t query_block_work(int64_t padded) {
  return 6 * kKeyBlock + kQueryBlock * (padded + 2) + 6 * padded;
}

extern const AttentionRow kAttentionScalar, kAttentionAvx2, kAttentionAvx512;

}  // namespace sfumato::kernels
