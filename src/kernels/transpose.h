#pragma once
// Transposing squares of kLanes x kLanes floats in registers; for files that include simd.h.
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

/// Swaps the off-diagonal blocks of 2 kBlock x 2 kBlock squares: rows i and i + kBlock exchange halves.
template <int kBlock>
SFUMATO_INLINE void swap_blocks(Vec (&m)[kLanes]) {
  IntVec low, high;
  for (int i = 0; i < kLanes; ++i) {
    const bool upper = i & kBlock;
    low[i] = upper ? kLanes + i - kBlock : i;
    high[i] = upper ? kLanes + i : i + kBlock;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (i & kBlock) continue;
    const Vec a = m[i], b = m[i + kBlock];
    m[i] = __builtin_shuffle(a, b, low);
    m[i + kBlock] = __builtin_shuffle(a, b, high);
  }
}

SFUMATO_INLINE void transpose(Vec (&m)[kLanes]) {
  swap_blocks<1>(m);
  swap_blocks<2>(m);
  if constexpr (kLanes >= 8) swap_blocks<4>(m);
  if constexpr (kLanes >= 16) swap_blocks<8>(m);
}

/// x: `rows` <= kLanes rows of `columns` floats -> out [columns, kLanes] times `factor`; the last row stands for those
/// that are missing. Rows of x and of out are *_stride floats apart.
[[maybe_unused]] inline void load_transposed(const float* x, int64_t x_stride, int64_t rows, int64_t columns,
                                             float factor, float* out, int64_t out_stride) {
  for_lanes(columns, [&](int64_t c, int width) {
    Vec m[kLanes];
    for (int i = 0; i < kLanes; ++i) m[i] = load_n(x + (i < rows ? i : rows - 1) * x_stride + c, width) * factor;
    transpose(m);
    for (int i = 0; i < kLanes; ++i)
      if (width == kLanes || i < width) store(out + (c + i) * out_stride, m[i]);
  });
}

/// x [columns, kLanes] times `factor` -> out: `rows` <= kLanes rows of `columns` floats.
[[maybe_unused]] inline void store_transposed(const float* x, int64_t x_stride, int64_t columns, Vec factor, float* out,
                                              int64_t out_stride, int64_t rows) {
  for_lanes(columns, [&](int64_t c, int width) {
    Vec m[kLanes];
    for (int i = 0; i < kLanes; ++i) m[i] = load(x + (c + (i < width ? i : 0)) * x_stride) * factor;
    transpose(m);
    if (rows == kLanes)
      for (int i = 0; i < kLanes; ++i) store_n(out + i * out_stride + c, m[i], width);
    else
      for (int i = 0; i < rows; ++i) store_n(out + i * out_stride + c, m[i], width);
  });
}

}  // namespace
}  // namespace sfumato::kernels
