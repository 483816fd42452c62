#include "kernels/matmul/matmul.h"

#include <omp.h>

#include <algorithm>

#include "base/aligned.h"
#include "kernels/elementwise/convert.h"
#include "kernels/matmul/table.h"

namespace sfumato::kernels {
namespace {

const MatmulRow& row_in_use() {
  static constexpr const MatmulRow* kRows[] = {&kMatmulScalar, &kMatmulAvx2, &kMatmulAvx512};
  return select(kRows);
}

int64_t panels_of(const MatmulRow& row, int64_t columns, bool geglu) {
  const int64_t results = geglu ? columns / 2 : columns, of_panel = geglu ? row.tile_columns / 2 : row.tile_columns;
  return (results + of_panel - 1) / of_panel;
}

/// How the work is cut. Changes no bits.
struct Plan {
  const MatmulRow& row = row_in_use();
  int64_t panels;         // of weights
  int64_t block_rows;     // rows of a that a thread takes through the weights together
  int64_t blocks, parts;  // of rows; of the panels
  int64_t work;           // floats a thread

  explicit Plan(const MatmulArgs& a) : panels(panels_of(row, a.columns, a.end.geglu)) {
    constexpr int64_t kCacheFloats = 256 * 1024;  // half of a large second-level cache
    const int64_t threads = omp_get_max_threads();
    const int64_t tiles = (a.rows + row.tile_rows - 1) / row.tile_rows;
    const int64_t fitting = std::max<int64_t>(1, kCacheFloats / row.panel_floats(a.depth));
    const int64_t sharing = std::max<int64_t>(1, tiles / (2 * threads));
    const int64_t block_tiles = std::min({tiles, fitting, sharing});
    block_rows = block_tiles * row.tile_rows;
    blocks = (tiles + block_tiles - 1) / block_tiles;
    parts = std::min(panels, std::max<int64_t>(1, 2 * threads / blocks));
    work = block_tiles * row.panel_floats(a.depth);
  }
};

}  // namespace

int64_t packed_weights_floats(int64_t columns, int64_t depth, bool geglu) {
  const MatmulRow& row = row_in_use();
  return panels_of(row, columns, geglu) * depth * row.tile_columns;
}

size_t pack_weights_scratch(int64_t depth, DType dtype) {
  if (dtype == DType::kF32) return 0;
  return static_cast<size_t>(omp_get_max_threads() * row_in_use().tile_columns * depth) * sizeof(float);
}

void pack_weights(const void* weights, DType dtype, int64_t columns, int64_t depth, bool geglu, float* out,
                  void* scratch) {
  const MatmulRow& row = row_in_use();
  const int64_t panels = panels_of(row, columns, geglu), half = row.tile_columns / 2;
  const int64_t end_of_low = geglu ? columns / 2 : columns;
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < panels; ++panel) {
    auto* wide = static_cast<float*>(scratch) + omp_get_thread_num() * row.tile_columns * depth;
    // Rows [first, first + half) or as many as there are before `end`, as float.
    const auto part = [&](int64_t first, int64_t end, float* room, int64_t& count) -> const float* {
      count = std::clamp<int64_t>(end - first, 0, half);
      const void* source =
          static_cast<const std::byte*>(weights) + first * depth * static_cast<int64_t>(dtype_size(dtype));
      if (dtype == DType::kF32) return static_cast<const float*>(source);
      convert_to_f32(source, dtype, count * depth, room);
      return room;
    };
    const int64_t first_low = geglu ? panel * half : 2 * panel * half;
    const int64_t first_high = geglu ? columns / 2 + panel * half : first_low + half;
    int64_t low_count, high_count;
    const float* low = part(first_low, end_of_low, wide, low_count);
    const float* high = part(first_high, columns, wide + half * depth, high_count);
    row.pack_columns(low, low_count, high, high_count, depth, out + panel * depth * row.tile_columns);
  }
}

size_t matmul_scratch(const MatmulArgs& args) {
  return static_cast<size_t>(omp_get_max_threads() * Plan(args).work) * sizeof(float);
}

void matmul(const MatmulArgs& args, void* scratch) {
  const Plan plan(args);
  const bool small = args.rows * args.depth * args.columns < 65536;  // not worth waking other threads
#pragma omp parallel for schedule(dynamic, 1) if (!small)
  for (int64_t job = 0; job < plan.blocks * plan.parts; ++job) {
    const int64_t first = job / plan.parts * plan.block_rows, part = job % plan.parts;
    plan.row.run(args, first, std::min(plan.block_rows, args.rows - first), part * plan.panels / plan.parts,
                 (part + 1) * plan.panels / plan.parts,
                 static_cast<float*>(scratch) + omp_get_thread_num() * plan.work);
  }
}

}  // namespace sfumato::kernels
