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

/// Floats of scratch: packed keys, packed values, and each thread's work.
struct Layout {
  int64_t padded, key_rows, keys_of_head, values_of_head, work;
  explicit Layout(const AttentionArgs& a)
      : padded((a.head_size + table().lanes - 1) / table().lanes * table().lanes),
        key_rows((a.keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock),
        keys_of_head(key_rows * a.head_size),
        values_of_head(key_rows * padded),
        work((query_block_work(padded) + 15) / 16 * 16) {}
};

}  // namespace

size_t attention_scratch(const AttentionArgs& a) {
  const Layout layout(a);
  const int64_t packed = a.batch * a.heads * (layout.keys_of_head + layout.values_of_head);
  return static_cast<size_t>(packed + omp_get_max_threads() * layout.work) * sizeof(float);
}

void attention(const AttentionArgs& a, void* scratch) {
  const AttentionRow& row = table();
  const Layout layout(a);
  const int64_t heads = a.batch * a.heads, blocks = (a.queries + kQueryBlock - 1) / kQueryBlock;
  float* keys = static_cast<float*>(scratch);
  float* values = keys + heads * layout.keys_of_head;
  float* work = values + heads * layout.values_of_head;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < heads; ++i) {
      const int64_t b = i / a.heads, column = i % a.heads * a.head_size;
      row.pack_keys(a.k + b * a.keys * a.k_stride + column, a.k_stride, a.keys, a.head_size,
                    keys + i * layout.keys_of_head);
      row.pack_values(a.v + b * a.keys * a.v_stride + column, a.v_stride, a.keys, a.head_size, layout.padded,
                      values + i * layout.values_of_head);
    }
#pragma omp for schedule(dynamic, 1)
    for (int64_t i = 0; i < heads * blocks; ++i) {
      const int64_t head = i / blocks, first = i % blocks * kQueryBlock;
      const int64_t b = head / a.heads, column = head % a.heads * a.head_size;
      row.query_block(a.q + (b * a.queries + first) * a.q_stride + column, a.q_stride,
                      std::min(kQueryBlock, a.queries - first), first, keys + head * layout.keys_of_head,
                      values + head * layout.values_of_head, a.keys, a.head_size, layout.padded, a.scale, a.causal,
                      a.out + (b * a.queries + first) * a.out_stride + column, a.out_stride,
                      work + omp_get_thread_num() * layout.work);
    }
  }
}

}  // namespace sfumato::kernels
