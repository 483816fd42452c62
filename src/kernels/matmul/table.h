#pragma once
#include "kernels/isa.h"
#include "kernels/matmul/matmul.h"

namespace sfumato::kernels {

/// The rows of the product family.
struct MatmulRow {
  Isa isa;
  int64_t tile_rows, tile_columns;  // columns of the weights; half of them are gates with geglu
  int64_t (*panel_floats)(int64_t depth);
  /// Two runs of at most tile_columns / 2 float weights' rows side by side -> [depth, tile_columns].
  void (*pack_columns)(const float* low, int64_t low_count, const float* high, int64_t high_count, int64_t depth,
                       float* out);
  /// Rows [first, first + count) of args.a -> panels in `work`; times the panels [first_panel, end_panel).
  void (*run)(const MatmulArgs& args, int64_t first, int64_t count, int64_t first_panel, int64_t end_panel,
              float* work);
};

extern const MatmulRow kMatmulScalar, kMatmulAvx2, kMatmulAvx512;

}  // namespace sfumato::kernels
