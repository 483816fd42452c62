#pragma once
// The register tile of all float products; for files that include simd.h.
//
// a is packed [depth, kTileRows] and b [depth, kTileColumns]; a step of the depth multiplies one column of the former
// by one row of the latter. Every sum runs over the whole depth from its beginning, with one accumulator: its bits
// depend on its own row and column alone, not on the tile's height nor on how the work is cut.
#include "kernels/simd.h"
#include "kernels/transpose.h"

namespace sfumato::kernels {
namespace {

constexpr int kTileRows = kLanes == 16 ? 14 : kLanes == 8 ? 6 : 4;  // with two vectors a row they fill the registers
constexpr int kTileColumns = 2 * kLanes;

/// Floats of a panel of rows: the transposing stores run past its end.
inline int64_t panel_floats(int64_t depth) {
  return (depth * kTileRows + kLanes + 15) / 16 * 16;
}

/// x: `rows` <= kTileRows rows -> a panel [columns, kTileRows]; the last row stands for those that are missing.
[[maybe_unused]] inline void pack_panel(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out) {
  load_transposed(x, stride, rows, columns, 1.0f, out, kTileRows);
}

template <int kRows>
inline void tile_sums_of(const float* a, const float* b, int64_t depth, float* out, int64_t stride) {
  Vec sums[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k, a += kTileRows, b += kTileColumns) {
    const Vec low = load(b), high = load(b + kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec x = splat(a[r]);
      sums[r][0] = fma(x, low, sums[r][0]);
      sums[r][1] = fma(x, high, sums[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    store(out + r * stride, sums[r][0]);
    store(out + r * stride + kLanes, sums[r][1]);
  }
}

/// out [rows, kTileColumns], its rows `stride` floats apart, = a b; 1 <= rows <= kTileRows.
template <int kRows = kTileRows>
[[maybe_unused]] inline void tile_sums(int rows, const float* a, const float* b, int64_t depth, float* out,
                                       int64_t stride) {
  if constexpr (kRows > 1)
    if (rows < kRows) return tile_sums<kRows - 1>(rows, a, b, depth, out, stride);
  tile_sums_of<kRows>(a, b, depth, out, stride);
}

}  // namespace
}  // namespace sfumato::kernels
