// The product family over Vec; included by matmul_<level>.cc, which define kLevel and ROW.
#include "kernels/activations.h"
#include "kernels/matmul/table.h"
#include "kernels/matmul/tile.h"

namespace sfumato::kernels {
namespace {

void pack_columns(const float* low, int64_t low_count, const float* high, int64_t high_count, int64_t depth,
                  float* out) {
  load_transposed(low, depth, low_count, depth, 1.0f, out, kTileColumns);
  if (high_count == 0) high = low, high_count = low_count;  // multiplied for nothing
  load_transposed(high, depth, high_count, depth, 1.0f, out + kLanes, kTileColumns);
}

inline Vec plus_bias(const float* sums, const float* bias, int64_t column, int width) {
  return bias ? load(sums) + load_n(bias + column, width) : load(sums);
}

/// Columns `first`.. of `rows` rows of results, of which `left` remain; sums [rows, kTileColumns].
void finish(const float* sums, int rows, const SumsEnd& end, int64_t first, int64_t left, float* out,
            const float* residual, int64_t stride) {
  for (int r = 0; r < rows; ++r, sums += kTileColumns, out += stride)
    for (int part = 0; part < kTileColumns && part < left; part += kLanes) {
      const int width = left - part < kLanes ? static_cast<int>(left - part) : kLanes;
      Vec v = plus_bias(sums + part, end.bias, first + part, width);
      if (end.has_activation) v = activate(end.activation, v);
      if (residual) v += load_n(residual + r * stride + part, width);
      store_n(out + part, v, width);
    }
}

void finish_geglu(const float* sums, int rows, const SumsEnd& end, int64_t first, int64_t half, float* out,
                  const float* residual, int64_t stride) {
  const int width = half - first < kLanes ? static_cast<int>(half - first) : kLanes;
  for (int r = 0; r < rows; ++r, sums += kTileColumns, out += stride) {
    const Vec a = plus_bias(sums, end.bias, first, width);
    Vec v = a * gelu(plus_bias(sums + kLanes, end.bias, half + first, width));
    if (residual) v += load_n(residual + r * stride, width);
    store_n(out, v, width);
  }
}

void run(const MatmulArgs& args, int64_t first, int64_t count, int64_t first_panel, int64_t end_panel, float* work) {
  const int64_t of_panel = panel_floats(args.depth);
  for (int64_t at = 0; at < count; at += kTileRows)
    pack_panel(args.a + (first + at) * args.a_stride, args.a_stride, count - at < kTileRows ? count - at : kTileRows,
               args.depth, work + at / kTileRows * of_panel);
  alignas(64) float sums[kTileRows * kTileColumns];
  const int64_t results = args.end.geglu ? kLanes : kTileColumns;  // of a panel
  for (int64_t panel = first_panel; panel < end_panel; ++panel)
    for (int64_t at = 0; at < count; at += kTileRows) {
      const int rows = count - at < kTileRows ? static_cast<int>(count - at) : kTileRows;
      tile_sums(rows, work + at / kTileRows * of_panel, args.weights + panel * args.depth * kTileColumns, args.depth,
                sums, kTileColumns);
      const int64_t column = panel * results, to = (first + at) * args.out_stride + column;
      const float* residual = args.end.residual ? args.end.residual + to : nullptr;
      if (args.end.geglu)
        finish_geglu(sums, rows, args.end, column, args.columns / 2, args.out + to, residual, args.out_stride);
      else
        finish(sums, rows, args.end, column, args.columns - column, args.out + to, residual, args.out_stride);
    }
}

}  // namespace

extern const MatmulRow ROW;
const MatmulRow ROW = {kLevel, kTileRows, kTileColumns, panel_floats, pack_columns, run};

}  // namespace sfumato::kernels
