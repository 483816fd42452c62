// The attention family over Vec; included by attention_<level>.cc, which define kLevel and ROW.
#include "kernels/attention/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

constexpr int kRows = kLanes == 4 ? 3 : 6;   // queries a micro-kernel takes
constexpr int kWide = kLanes == 16 ? 4 : 2;  // vectors of keys, or of head columns, it takes
constexpr float kMinusInfinity = -__builtin_inff();

void pack_keys(const float* k, int64_t stride, int64_t keys, int64_t head_size, float* out) {
  for (int64_t first = 0; first < keys; first += kKeyBlock, out += head_size * kKeyBlock) {
    const int64_t count = keys - first < kKeyBlock ? keys - first : kKeyBlock;
    for (int64_t t = 0; t < kKeyBlock; ++t)
      for (int64_t d = 0; d < head_size; ++d) out[d * kKeyBlock + t] = t < count ? k[(first + t) * stride + d] : 0.0f;
  }
}

void pack_values(const float* v, int64_t stride, int64_t keys, int64_t head_size, int64_t padded, float* out) {
  const int64_t rows = (keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t d = 0; d < padded; ++d) out[t * padded + d] = t < keys && d < head_size ? v[t * stride + d] : 0.0f;
}

/// c[r][0..kN*kLanes) (+)= sum over i of a[r][i] * b[i][0..kN*kLanes), r < kRows, i < depth.
template <int kN, bool kAdd>
inline void multiply(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t depth, float* c,
                     int64_t c_stride) {
  Vec sums[kRows][kN];
  for (int r = 0; r < kRows; ++r)
    for (int n = 0; n < kN; ++n) sums[r][n] = kAdd ? load(c + r * c_stride + n * kLanes) : Vec{};
  for (int64_t i = 0; i < depth; ++i) {
    Vec row[kN];
    for (int n = 0; n < kN; ++n) row[n] = load(b + i * b_stride + n * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec x = splat(a[r * a_stride + i]);
      for (int n = 0; n < kN; ++n) sums[r][n] = fma(x, row[n], sums[r][n]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int n = 0; n < kN; ++n) store(c + r * c_stride + n * kLanes, sums[r][n]);
}

/// The same over `columns` columns, a multiple of kLanes.
template <bool kAdd>
inline void multiply_wide(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t depth, float* c,
                          int64_t c_stride, int64_t columns) {
  int64_t at = 0;
  for (; at + kWide * kLanes <= columns; at += kWide * kLanes)
    multiply<kWide, kAdd>(a, a_stride, b + at, b_stride, depth, c + at, c_stride);
  if (kWide == 4 && at + 2 * kLanes <= columns) {
    multiply<2, kAdd>(a, a_stride, b + at, b_stride, depth, c + at, c_stride);
    at += 2 * kLanes;
  }
  if (at < columns) multiply<1, kAdd>(a, a_stride, b + at, b_stride, depth, c + at, c_stride);
}

/// Turns a row of scores into e^(score - largest so far), and scales what was summed before to the new largest.
inline void soften(float* scores, int64_t visible, float* sums, int64_t padded, float* largest_so_far, float* total) {
  for (int64_t t = visible; t < kKeyBlock; ++t) scores[t] = kMinusInfinity;
  Vec best = load(scores);
  for (int64_t t = kLanes; t < kKeyBlock; t += kLanes) best = max(best, load(scores + t));
  const float before = *largest_so_far, peak = largest(best) > before ? largest(best) : before;
  if (peak == kMinusInfinity) {  // nothing visible yet
    for (int64_t t = 0; t < kKeyBlock; t += kLanes) store(scores + t, Vec{});
    return;
  }
  Vec partial{};
  for (int64_t t = 0; t < kKeyBlock; t += kLanes) {
    const Vec p = exp(load(scores + t) - peak);
    partial += p;
    store(scores + t, p);
  }
  const float fade = exp(splat(before - peak))[0];
  *total = *total * fade + sum(partial);
  *largest_so_far = peak;
  if (fade != 1.0f)
    for (int64_t d = 0; d < padded; d += kLanes) store(sums + d, load(sums + d) * fade);
}

inline int64_t clamp_count(int64_t n, int64_t most) { return n < 0 ? 0 : n > most ? most : n; }

void query_block(const float* q, int64_t q_stride, int64_t queries, int64_t first, const float* packed_keys,
                 const float* packed_values, int64_t keys, int64_t head_size, int64_t padded, float scale, bool causal,
                 float* out, int64_t out_stride, float* work) {
  float* scores = work;                            // [kRows][kKeyBlock]
  float* sums = scores + 6 * kKeyBlock;            // [kQueryBlock][padded]
  float* largest_so_far = sums + kQueryBlock * padded;
  float* total = largest_so_far + kQueryBlock;
  float* scaled = total + kQueryBlock;             // [kRows][head_size]
  for (int64_t i = 0; i < kQueryBlock * padded; ++i) sums[i] = 0;
  for (int64_t i = 0; i < kQueryBlock; ++i) largest_so_far[i] = kMinusInfinity, total[i] = 0;

  const int64_t last_key = causal ? clamp_count(first + queries, keys) : keys;
  for (int64_t begin = 0; begin < last_key; begin += kKeyBlock) {
    const float* keys_here = packed_keys + begin * head_size;
    const float* values_here = packed_values + begin * padded;
    for (int64_t row = 0; row < queries; row += kRows) {
      const int64_t rows = clamp_count(queries - row, kRows);
      for (int64_t r = 0; r < kRows; ++r)  // missing rows repeat the first: computed, never stored
        for (int64_t d = 0; d < head_size; ++d)
          scaled[r * head_size + d] = q[(row + (r < rows ? r : 0)) * q_stride + d] * scale;
      multiply_wide<false>(scaled, head_size, keys_here, kKeyBlock, head_size, scores, kKeyBlock, kKeyBlock);
      for (int64_t r = 0; r < kRows; ++r) {
        const int64_t at = row + (r < rows ? r : 0);
        const int64_t visible = causal ? first + at + 1 : keys;
        if (r < rows)
          soften(scores + r * kKeyBlock, clamp_count(visible - begin, kKeyBlock), sums + at * padded, padded,
                 largest_so_far + at, total + at);
      }
      multiply_wide<true>(scores, kKeyBlock, values_here, padded, kKeyBlock, sums + row * padded, padded, padded);
    }
  }
  for (int64_t r = 0; r < queries; ++r) {
    const float inverse = 1.0f / total[r];
    for (int64_t d = 0; d < head_size; ++d) out[r * out_stride + d] = sums[r * padded + d] * inverse;
  }
}

}  // namespace

extern const AttentionRow ROW;
const AttentionRow ROW = {kLevel, kLanes, pack_keys, pack_values, query_block};

}  // namespace sfumato::kernels
