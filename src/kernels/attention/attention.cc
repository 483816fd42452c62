#include "kernels/attention/attention.h"

#include <omp.h>

#include <algorithm>

#include "kernels/attention/table.h"

namespace sfumato::kernels {
namespace {

const AttentionRow& row_for(AttentionPrecision precision) {
  static constexpr const AttentionRow* kFloat[] = {&kAttentionScalar, &kAttentionAvx2, &kAttentionAvx512};
  static constexpr const AttentionRow* kRounded[] = {&kAttentionScalar, &kAttentionAvx2, &kAttentionAvx512,
                                                     &kAttentionAvx512Bf16, &kAttentionAmx};
  return precision == AttentionPrecision::kBF16 ? select(kRounded) : select(kFloat);
}

/// How the work is cut and where it lies in scratch. Changes no bits.
struct Plan {
  const AttentionRow& row;
  int64_t heads;         // of all samples
  int64_t queries;       // that a thread takes through a head's keys together
  int64_t keys_of_head;  // packed elements
  int64_t values_of_head;
  int64_t work;  // floats a thread

  explicit Plan(const AttentionArgs& a) : row(row_for(a.precision)), heads(a.batch * a.heads) {
    // As many as keep their queries and sums in half of a small second-level cache, but few enough for all threads.
    constexpr int64_t kCacheFloats = 32 * 1024;
    const int64_t tiles = (a.queries + row.step - 1) / row.step;
    const int64_t fitting = kCacheFloats / (2 * a.head_size * row.step);
    const int64_t sharing = heads * tiles / (4 * omp_get_max_threads());
    queries = row.step * std::max<int64_t>(1, std::min({fitting, tiles, sharing}));
    keys_of_head = row.packed_keys ? row.packed_keys(a.keys, a.head_size) : 0;
    values_of_head = row.packed_values ? row.packed_values(a.keys, a.head_size) : 0;
    work = (row.work_floats(queries, a.head_size) + 15) / 16 * 16;
  }

  size_t packed_bytes() const {
    return static_cast<size_t>(heads * (keys_of_head + values_of_head)) * sizeof(uint16_t);
  }
  size_t scratch_bytes() const {
    return packed_bytes() + static_cast<size_t>(omp_get_max_threads() * work) * sizeof(float);
  }
};

}  // namespace

size_t attention_scratch(const AttentionArgs& a) {
  return Plan(a).scratch_bytes();
}

void attention(const AttentionArgs& a, void* scratch) {
  const Plan plan(a);
  uint16_t* packed_keys = static_cast<uint16_t*>(scratch);
  uint16_t* packed_values = packed_keys + plan.heads * plan.keys_of_head;
  float* work = reinterpret_cast<float*>(static_cast<std::byte*>(scratch) + plan.packed_bytes());
  const int64_t blocks = (a.queries + plan.queries - 1) / plan.queries;
  const auto keys_at = [&](const float* x, int64_t stride, int64_t head) {
    return x + head / a.heads * a.keys * stride + head % a.heads * a.head_size;
  };
  const bool small = plan.heads * a.queries * a.keys * a.head_size < 65536;  // not worth waking other threads
#pragma omp parallel if (!small)
  {
    if (plan.row.pack_keys) {
#pragma omp for schedule(static)
      for (int64_t head = 0; head < plan.heads; ++head) {
        plan.row.pack_keys(keys_at(a.k, a.k_stride, head), a.k_stride, a.keys, a.head_size,
                           packed_keys + head * plan.keys_of_head);
        plan.row.pack_values(keys_at(a.v, a.v_stride, head), a.v_stride, a.keys, a.head_size,
                             packed_values + head * plan.values_of_head);
      }
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < plan.heads * blocks; ++i) {
      const int64_t head = i / blocks, first = i % blocks * plan.queries, column = head % a.heads * a.head_size;
      const int64_t row = head / a.heads * a.queries + first;
      const AttentionBlock block = {
          .q = a.q + row * a.q_stride + column,
          .k = keys_at(a.k, a.k_stride, head),
          .v = keys_at(a.v, a.v_stride, head),
          .packed_keys = packed_keys + head * plan.keys_of_head,
          .packed_values = packed_values + head * plan.values_of_head,
          .out = a.out + row * a.out_stride + column,
          .q_stride = a.q_stride,
          .k_stride = a.k_stride,
          .v_stride = a.v_stride,
          .out_stride = a.out_stride,
          .queries = std::min(plan.queries, a.queries - first),
          .first = first,
          .keys = a.keys,
          .head_size = a.head_size,
          .scale = a.scale,
          .causal = a.causal,
      };
      plan.row.run(block, work + omp_get_thread_num() * plan.work);
    }
  }
}

}  // namespace sfumato::kernels
