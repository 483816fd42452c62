// Attention in bfloat16, laid out as attention.inl does it: scores S^T = K Q^T, sums O^T = V^T P^T, with queries across
// the columns. Operands lie in tiles of 16x32 as AMX takes them, in the order of use, so that every tile is 1 KiB in one
// piece. Included by attention_<level>.cc, which define kLevel and ROW and, after this, how tiles are multiplied.
#include "kernels/attention/table.h"
#include "kernels/simd.h"
#include "kernels/transpose.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kTile = 512;    // bfloat16 elements of a tile: 16 rows of 32
constexpr int64_t kQueries = 32;  // two tiles of columns
constexpr int64_t kKeys = 128;    // keys whose scores are held at a time; fixed, for it decides the order of sums

constexpr int64_t tiles(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/// The first `count` of 16 lanes; none and all of them where it is out of 0..16.
SFUMATO_INLINE __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : count > 0 ? (1 << count) - 1 : 0);
}

/// The first `count` of 32 floats, the others zeros, times factor, to nearest even.
SFUMATO_INLINE __m512i round_32(const float* x, int64_t count, float factor) {
  const Vec low = (Vec)_mm512_maskz_loadu_ps(first_lanes(count), x) * factor;
  const Vec high = (Vec)_mm512_maskz_loadu_ps(first_lanes(count - 16), x + 16) * factor;
  return (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

/// K -> [key tiles, an even number][head_size steps of 32][16 keys][32]; keys beyond are zeros.
void pack_keys(const float* k, int64_t stride, int64_t keys, int64_t head_size, uint16_t* out) {
  const int64_t depth = tiles(head_size, 32);
  for (int64_t t = 0; t < 32 * tiles(keys, 32); ++t) {
    uint16_t* row = out + (t / 16 * depth * 16 + t % 16) * 32;
    for (int64_t step = 0; step < depth; ++step)
      _mm512_storeu_si512(row + step * kTile,
                          round_32(k + t * stride + step * 32, t < keys ? head_size - step * 32 : 0, 1));
  }
}

/// V -> V^T as [key steps of 32][head_size tiles][16 of head_size][32 keys]
void pack_values(const float* v, int64_t stride, int64_t keys, int64_t head_size, uint16_t* out) {
  for (int64_t first = 0; first < keys; first += 32)
    for (int64_t d = 0; d < head_size; d += 16, out += kTile) {
      Vec low[kLanes], high[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const float* at = v + (first + i) * stride + d;
        const __mmask16 columns = first_lanes(head_size - d);
        low[i] = (Vec)_mm512_maskz_loadu_ps(first + i < keys ? columns : 0, at);
        high[i] = (Vec)_mm512_maskz_loadu_ps(first + 16 + i < keys ? columns : 0, at + 16 * stride);
      }
      transpose(low);
      transpose(high);
      for (int i = 0; i < kLanes; ++i)
        _mm512_storeu_si512(out + i * 32, (__m512i)_mm512_cvtne2ps_pbh((__m512)high[i], (__m512)low[i]));
    }
}

/// 16 queries -> [head_size steps][16 pairs of head_size][16 queries][2]; the last row stands for missing ones.
void pack_queries(const float* q, int64_t stride, int64_t rows, int64_t head_size, float factor, uint16_t* out,
                  int64_t out_stride) {
  for (int64_t d = 0; d < head_size; d += 32, out += out_stride) {
    Vec pairs[kLanes];
    for (int i = 0; i < kLanes; ++i)
      pairs[i] = (Vec)round_32(q + (i < rows ? i : rows - 1) * stride + d, head_size - d, factor);
    transpose(pairs);
    for (int i = 0; i < kLanes; ++i) store(reinterpret_cast<float*>(out) + i * kLanes, pairs[i]);
  }
}

/// c [rows <= 32, kQueries] = sum over `depth` of a b, or (kAdd) += it. Tiles of a are [16 rows][32], of b [16
/// pairs][16 queries][2]; they lie `a_step` and `b_step` elements apart from one 32 of depth to the next; rows from 16
/// on are `a_pair` behind the first, queries from 16 on a tile behind. What is beyond rows and depth is zeros.
template <bool kAdd>
void multiply_tiles(const uint16_t* a, int64_t a_pair, int64_t a_step, const uint16_t* b, int64_t b_step, int64_t depth,
                    int64_t rows, float* c);
/// Around all products of a run.
void begin_tiles();
void end_tiles();

/// Floats of the state of 32 queries: packed queries, sums, largest scores and totals.
constexpr int64_t state_floats(int64_t head_size) {
  return tiles(head_size, 32) * kTile + tiles(head_size, 16) * 16 * kQueries + 2 * kQueries;
}
/// Floats of scores [kKeys, kQueries], and of the weights in bfloat16.
constexpr int64_t kScores = kKeys * kQueries, kWeights = kScores / 2;

/// A group of 32 queries against the keys from `begin` on.
struct Group {
  const AttentionBlock& block;
  int64_t first, queries;  // within the block
  int64_t begin;
  uint16_t* q;        // [head_size steps][2 tiles]
  float* sums;        // [head_size tiles * 16, kQueries]
  float* largest;     // [kQueries], whole numbers
  float* total;       // [kQueries]
  float* scores;      // [kKeys, kQueries]
  uint16_t* weights;  // [kKeys / 32 steps][2 tiles][16 pairs of keys][16 queries][2]

  Group(const AttentionBlock& block, float* work, int64_t number, int64_t begin)
      : block(block), first(number * kQueries), begin(begin) {
    queries = block.queries - first < kQueries ? block.queries - first : kQueries;
    scores = work;
    weights = reinterpret_cast<uint16_t*>(work + kScores);
    float* state = work + kScores + kWeights + number * state_floats(block.head_size);
    q = reinterpret_cast<uint16_t*>(state);
    sums = state + tiles(block.head_size, 32) * kTile;
    largest = sums + tiles(block.head_size, 16) * 16 * kQueries;
    total = largest + kQueries;
  }

  int64_t first_query() const { return block.first + first; }
  /// Keys of the block that any of the queries sees.
  int64_t count() const {
    const int64_t count = block.keys - begin < kKeys ? block.keys - begin : kKeys;
    const int64_t seen = first_query() + queries - begin;
    return block.causal && seen < count ? (seen > 0 ? seen : 0) : count;
  }
  int64_t steps() const { return tiles(count(), 32); }

  void start() const {
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t at = queries > half * 16 ? half * 16 : 0;
      pack_queries(block.q + (first + at) * block.q_stride, block.q_stride, queries - at < 16 ? queries - at : 16,
                   block.head_size, block.scale * 1.44269504f, q + half * kTile, 2 * kTile);
    }
    for (int64_t i = 0; i < tiles(block.head_size, 16) * 16 * kQueries; i += kLanes) store(sums + i, Vec{});
    for (int64_t i = 0; i < kQueries; i += kLanes) store(largest + i, splat(-1e30f)), store(total + i, Vec{});
  }

  void take_keys() const {
    if (count() == 0) return;
    score();
    soften();
    add_values();
  }

  void score() const {
    const int64_t depth = tiles(block.head_size, 32);
    const uint16_t* k = block.packed_keys + begin / 16 * depth * kTile;
    for (int64_t i = 0; i < steps(); ++i)
      multiply_tiles<false>(k + 2 * i * depth * kTile, depth * kTile, kTile, q, 2 * kTile, block.head_size, 32,
                            scores + i * 32 * kQueries);
  }

  void soften() const {
    for (int64_t t = count(); t < steps() * 32; ++t)
      for (int64_t i = 0; i < kQueries; i += kLanes) store(scores + t * kQueries + i, splat(-__builtin_inff()));
    if (block.causal && begin + count() - 1 > first_query()) hide_future();
    for (int64_t half = 0; half < 2; ++half) soften(half);
  }

  void hide_future() const {
    for (int64_t t = 0; t < count(); ++t)
      for (int64_t i = 0; i < kQueries && first_query() + i < begin + t; ++i)
        scores[t * kQueries + i] = -__builtin_inff();
  }

  /// Scores of 16 queries -> weights 2^(score - M), M the largest so far rounded up to a whole number. Then score + K,
  /// K = kRound - M, holds score - M rounded to an integer in its low bits (see exp2_of_negative), and what was
  /// summed before is scaled by a power of two. A cubic does for 2^r: error 8e-5, a weight has 8 bits.
  void soften(int64_t half) const {
    const int64_t steps = this->steps();
    const float* s = scores + half * 16;
    Vec peaks[4];
    for (Vec& peak : peaks) peak = splat(-1e30f);
    for (int64_t t = 0; t < steps * 32; t += 4)
      for (int i = 0; i < 4; ++i) peaks[i] = max(peaks[i], load(s + (t + i) * kQueries));
    Vec peak = max(max(peaks[0], peaks[1]), max(peaks[2], peaks[3]));
    const Vec before = load(largest + half * 16);
    peak = max(before, (Vec)_mm512_maskz_roundscale_ps(0xffff, (__m512)peak, _MM_FROUND_TO_POS_INF));
    const Vec lowest = peak - 127.0f, k = kRound - peak;
    const auto weight = [&](int64_t t) {
      const Vec score = max(lowest, load(s + t * kQueries));
      const Vec shifted = score + k;
      const Vec r = score - (shifted - k);
      Vec p = splat(5.51716698e-2f);
      p = fma(p, r, splat(2.42611122e-1f));
      p = fma(p, r, splat(6.93260985e-1f));
      p = fma(p, r, splat(9.99928074e-1f));
      return p * power_of_two(shifted);
    };
    const __m512i half_unit = _mm512_set1_epi32(0x8000);  // rounds to bfloat16: weights are positive, ties go up
    Vec sum_even{}, sum_odd{};
    for (int64_t step = 0; step < steps; ++step) {
      uint16_t* to = weights + (step * 2 + half) * kTile;
      for (int64_t i = 0; i < 16; ++i) {
        const Vec even = weight(step * 32 + 2 * i), odd = weight(step * 32 + 2 * i + 1);
        sum_even += even, sum_odd += odd;
        const __m512i low = _mm512_maskz_srli_epi32(0xffff, _mm512_add_epi32((__m512i)even, half_unit), 16);
        const __m512i high = _mm512_add_epi32((__m512i)odd, half_unit);
        _mm512_storeu_si512(to + i * 32, _mm512_mask_blend_epi16(0x55555555, high, low));
      }
    }
    const Vec fade = exp2_of_negative(before - peak);
    store(total + half * 16, fma(load(total + half * 16), fade, sum_even + sum_odd));
    store(largest + half * 16, peak);
    if (_mm512_cmpneq_ps_mask((__m512)fade, _mm512_set1_ps(1)))
      for (int64_t d = 0; d < block.head_size; ++d) {
        float* row = sums + d * kQueries + half * 16;
        store(row, load(row) * fade);
      }
  }

  void add_values() const {
    const int64_t columns = tiles(block.head_size, 16);
    const uint16_t* v = block.packed_values + begin / 32 * columns * kTile;
    for (int64_t i = 0; i < columns; i += 2) {
      const int64_t left = block.head_size - i * 16;
      multiply_tiles<true>(v + i * kTile, kTile, columns * kTile, weights, 2 * kTile, count(), left < 32 ? left : 32,
                           sums + i * 16 * kQueries);
    }
  }

  void finish() const {
    for (int64_t half = 0; half < 2 && half * 16 < queries; ++half) {
      const int64_t rows = queries - half * 16 < 16 ? queries - half * 16 : 16;
      store_transposed(sums + half * 16, kQueries, block.head_size, 1.0f / load(total + half * 16),
                       block.out + (first + half * 16) * block.out_stride, block.out_stride, rows);
    }
  }
};

int64_t work_floats(int64_t queries, int64_t head_size) {
  return kScores + kWeights + tiles(queries, kQueries) * state_floats(head_size);
}

void run(const AttentionBlock& block, float* work) {
  begin_tiles();
  const int64_t groups = tiles(block.queries, kQueries);
  for (int64_t i = 0; i < groups; ++i) Group(block, work, i, 0).start();
  for (int64_t begin = 0; begin < block.keys; begin += kKeys)  // its keys stay near for all groups
    for (int64_t i = 0; i < groups; ++i) Group(block, work, i, begin).take_keys();
  for (int64_t i = 0; i < groups; ++i) Group(block, work, i, 0).finish();
  end_tiles();
}

int64_t packed_keys(int64_t keys, int64_t head_size) {
  return 2 * tiles(keys, 32) * tiles(head_size, 32) * kTile;
}
int64_t packed_values(int64_t keys, int64_t head_size) {
  return tiles(keys, 32) * tiles(head_size, 16) * kTile;
}

}  // namespace

extern const AttentionRow ROW;
const AttentionRow ROW = {kLevel, kQueries, work_floats, run, packed_keys, packed_values, pack_keys, pack_values};

}  // namespace sfumato::kernels
