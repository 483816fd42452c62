#define ROW kAttentionAvx512Bf16
#define kLevel Isa::kAvx512Bf16
#include "kernels/attention/attention_bf16.inl"

namespace sfumato::kernels {
namespace {

void begin_tiles() {}
void end_tiles() {}

constexpr int64_t kRows = 8;  // times two vectors of queries: 16 sums in registers

/// Two neighbours of bfloat16, in every lane.
SFUMATO_INLINE __m512bh splat_pair(const uint16_t* at) {
  int32_t pair;
  __builtin_memcpy(&pair, at, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}
SFUMATO_INLINE __m512bh load_pairs(const uint16_t* at) {
  return (__m512bh)_mm512_loadu_si512(at);
}

template <bool kAdd>
SFUMATO_INLINE void multiply_rows(const uint16_t* a, int64_t a_step, const uint16_t* b, int64_t b_step, int64_t depth,
                                  float* c) {
  __m512 sums[kRows][2];
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t w = 0; w < 2; ++w)
      sums[r][w] = kAdd ? _mm512_loadu_ps(c + r * kQueries + w * 16) : _mm512_setzero_ps();
  for (; depth > 0; depth -= 32, a += a_step, b += b_step)
    for (int64_t pair = 0; pair < 16 && 2 * pair < depth; ++pair) {
      const __m512bh left = load_pairs(b + pair * 32), right = load_pairs(b + kTile + pair * 32);
      for (int64_t r = 0; r < kRows; ++r) {
        const __m512bh x = splat_pair(a + r * 32 + 2 * pair);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], x, left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], x, right);
      }
    }
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t w = 0; w < 2; ++w) _mm512_storeu_ps(c + r * kQueries + w * 16, sums[r][w]);
}

template <bool kAdd>
SFUMATO_INLINE void multiply_tiles(const uint16_t* a, int64_t a_pair, int64_t a_step, const uint16_t* b, int64_t b_step,
                                   int64_t depth, int64_t rows, float* c) {
  for (int64_t r = 0; r < rows; r += kRows)
    multiply_rows<kAdd>(a + r / 16 * a_pair + r % 16 * 32, a_step, b, b_step, depth, c + r * kQueries);
}

}  // namespace
}  // namespace sfumato::kernels
