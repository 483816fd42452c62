#include "kernels/conv/winograd.h"

#include <omp.h>

#include <algorithm>

#include "kernels/conv/table.h"
#include "kernels/elementwise/convert.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kPositions = 36, kOut = 4;

const WinogradRow& row_in_use() {
  static constexpr const WinogradRow* kRows[] = {&kWinogradScalar, &kWinogradAvx2, &kWinogradAvx512};
  return select(kRows);
}

/// How the work is cut. Changes no bits.
struct Plan {
  const WinogradRow& row = row_in_use();
  int64_t tiles, blocks;
  int64_t work;  // floats a thread

  explicit Plan(const WinogradArgs& a) {
    // The weights pass by once a block: more tiles, less traffic; but its inputs and sums should stay near.
    constexpr int64_t kBlockFloats = 1024 * 1024, kFewest = 112;
    tiles = a.batch * ((a.out_height + kOut - 1) / kOut) * ((a.out_width + kOut - 1) / kOut);
    const int64_t most = std::max(kFewest, kBlockFloats / (kPositions * (a.channels + a.out_channels)));
    const int64_t threads = omp_get_max_threads();
    blocks = std::min(tiles, (tiles + most * threads - 1) / (most * threads) * threads);
    work = row.work_floats((tiles + blocks - 1) / blocks, a.channels, a.out_channels);
  }
};

}  // namespace

int64_t winograd_weights_floats(int64_t out_channels, int64_t channels) {
  const int64_t columns = row_in_use().tile_columns;
  return kPositions * channels * ((out_channels + columns - 1) / columns * columns);
}

size_t winograd_weights_scratch(int64_t channels) {
  return static_cast<size_t>(omp_get_max_threads() * row_in_use().tile_columns * channels * 9) * sizeof(float);
}

void winograd_weights(const void* weights, DType dtype, int64_t out_channels, int64_t channels, float* out,
                      void* scratch) {
  const WinogradRow& row = row_in_use();
  const int64_t panels = (out_channels + row.tile_columns - 1) / row.tile_columns,
                of_panel = channels * row.tile_columns;
#pragma omp parallel for schedule(static)
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t first = panel * row.tile_columns, count = std::min(row.tile_columns, out_channels - first);
    auto* wide = static_cast<float*>(scratch) + omp_get_thread_num() * of_panel * 9;
    convert_to_f32(
        static_cast<const std::byte*>(weights) + first * channels * 9 * static_cast<int64_t>(dtype_size(dtype)), dtype,
        count * channels * 9, wide);
    row.transform_weights(wide, count, channels, out + panel * of_panel, panels * of_panel);
  }
}

size_t winograd_scratch(const WinogradArgs& args) {
  return static_cast<size_t>(omp_get_max_threads() * Plan(args).work) * sizeof(float);
}

void winograd(const WinogradArgs& args, void* scratch) {
  const Plan plan(args);
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t block = 0; block < plan.blocks; ++block) {
    const int64_t first = block * plan.tiles / plan.blocks, end = (block + 1) * plan.tiles / plan.blocks;
    plan.row.run(args, first, end - first, static_cast<float*>(scratch) + omp_get_thread_num() * plan.work);
  }
}

}  // namespace sfumato::kernels
