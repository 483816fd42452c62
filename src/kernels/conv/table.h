#pragma once
#include "kernels/conv/winograd.h"
#include "kernels/isa.h"

namespace sfumato::kernels {

/// The rows of the Winograd family.
struct WinogradRow {
  Isa isa;
  int64_t tile_rows, tile_columns;
  /// w: `count` <= tile_columns float weights' rows [channels,3,3] -> [channels, tile_columns], 36 times,
  /// position_stride floats apart.
  void (*transform_weights)(const float* w, int64_t count, int64_t channels, float* out, int64_t position_stride);
  /// Floats of `work` that run() needs.
  int64_t (*work_floats)(int64_t tiles, int64_t channels, int64_t out_channels);
  /// Tiles [first, first + count) of 4x4 outputs, numbered by image, row, column.
  void (*run)(const WinogradArgs& args, int64_t first, int64_t count, float* work);
};

extern const WinogradRow kWinogradScalar, kWinogradAvx2, kWinogradAvx512;

}  // namespace sfumato::kernels
