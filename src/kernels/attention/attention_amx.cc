#define ROW kAttentionAmx
#define kLevel Isa::kAmx
#include "kernels/attention/attention_bf16.inl"

namespace sfumato::kernels {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_a_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void begin_tiles() {
  static constexpr TileConfig kConfig;
  _tile_loadconfig(&kConfig);
}
void end_tiles() {
  _tile_release();
}

/// kBoth: 32 rows, tiles 0..3, else 16.
template <bool kBoth, bool kAdd>
SFUMATO_INLINE void multiply(const uint16_t* a, int64_t a_pair, int64_t a_step, const uint16_t* b, int64_t b_step,
                             int64_t steps, float* c) {
  constexpr int64_t kRow = kQueries * static_cast<int64_t>(sizeof(float));  // bytes
  float* below = c + 16 * kQueries;
  asm volatile("" ::: "memory");  // gcc 12's tile loads do not say that they read memory: stores before must be there
  if constexpr (kAdd) {
    _tile_loadd(0, c, kRow);
    _tile_loadd(1, c + 16, kRow);
    if constexpr (kBoth) {
      _tile_loadd(2, below, kRow);
      _tile_loadd(3, below + 16, kRow);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < steps; ++i, a += a_step, b += b_step) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, 64);
    _tile_loadd(7, b + kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kBoth) {
      _tile_loadd(5, a + a_pair, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, kRow);
  _tile_stored(1, c + 16, kRow);
  if constexpr (kBoth) {
    _tile_stored(2, below, kRow);
    _tile_stored(3, below + 16, kRow);
  }
}

template <bool kAdd>
SFUMATO_INLINE void multiply_tiles(const uint16_t* a, int64_t a_pair, int64_t a_step, const uint16_t* b, int64_t b_step,
                                   int64_t depth, int64_t rows, float* c) {
  if (rows > 16)
    multiply<true, kAdd>(a, a_pair, a_step, b, b_step, tiles(depth, 32), c);
  else
    multiply<false, kAdd>(a, a_pair, a_step, b, b_step, tiles(depth, 32), c);
}

}  // namespace
}  // namespace sfumato::kernels
