// The attention family over Vec; included by attention_<level>.cc, which define kLevel and ROW.
//
// A tile of queries lies across the lanes: scores are S^T [keys, queries], sums are O^T [head_size, queries]. Then both
// products take K and V as they are, one broadcast element at a time, whatever the head size and the number of keys;
// the softmax needs nothing across lanes; and each query's arithmetic is the same in every lane.
#include "kernels/attention/table.h"
#include "kernels/simd.h"
#include "kernels/transpose.h"

namespace sfumato::kernels {
namespace {

// A register tile: kRows keys (or columns of the head) times kWide vectors of queries.
constexpr int kRows = kLanes == 16 ? 8 : 4;
constexpr int kWide = kLanes == 4 ? 2 : 3;
constexpr int64_t kKeyBlock = 128;  // keys whose scores are held at a time; fixed, for it decides the order of sums
constexpr int64_t kStep = kWide * kLanes;
constexpr float kLog2E = 1.44269504f;

/// sums[r][w] = sum over i of a[r * row_stride + i * stride] * b[i][w], i < depth; b [depth, kW * kLanes].
template <int kR, int kW>
SFUMATO_INLINE void product(const float* a, int64_t row_stride, int64_t stride, const float* b, int64_t depth,
                            Vec (&sums)[kR][kW]) {
  for (int r = 0; r < kR; ++r)
    for (int w = 0; w < kW; ++w) sums[r][w] = Vec{};
  for (int64_t i = 0; i < depth; ++i) {
    Vec row[kW];
    for (int w = 0; w < kW; ++w) row[w] = load(b + (i * kW + w) * kLanes);
    for (int r = 0; r < kR; ++r) {
      const Vec x = splat(a[r * row_stride + i * stride]);
      for (int w = 0; w < kW; ++w) sums[r][w] = fma(x, row[w], sums[r][w]);
    }
  }
}

/// Calls step.template operator()<R>(at) over [0, n): R = kRows as long as it fits, then the powers of two below.
template <class Step>
inline void for_rows(int64_t n, Step step) {
  int64_t at = 0;
  for (; at + kRows <= n; at += kRows) step.template operator()<kRows>(at);
  if (kRows > 4 && at + 4 <= n) step.template operator()<4>(at), at += 4;
  if (at + 2 <= n) step.template operator()<2>(at), at += 2;
  if (at < n) step.template operator()<1>(at);
}

/// A tile of kW vectors of queries and what it has gathered so far.
template <int kW>
struct Tile {
  const AttentionBlock& block;
  int64_t first, queries;  // within the block
  float* q;                // [head_size, kW * kLanes], times scale * log2 e
  float* sums;             // [head_size, kW * kLanes]
  float* running;          // [3, kW * kLanes]: largest score, total, factor of this key block
  float* scores;           // [kKeyBlock, kW * kLanes]

  float* largest() const { return running; }
  float* total() const { return running + kW * kLanes; }
  float* fade() const { return running + 2 * kW * kLanes; }

  void begin() const {
    for (int w = 0; w < kW; ++w) {
      const int64_t at = first + w * kLanes, rows = queries - w * kLanes;
      load_transposed(block.q + at * block.q_stride, block.q_stride, rows < kLanes ? rows : kLanes, block.head_size,
                      block.scale * kLog2E, q + w * kLanes, kW * kLanes);
      store(largest() + w * kLanes, splat(-__builtin_inff()));
      store(total() + w * kLanes, Vec{});
    }
    for (int64_t i = 0; i < block.head_size * kW; ++i) store(sums + i * kLanes, Vec{});
  }

  void take_keys(int64_t begin) const {
    int64_t count = block.keys - begin < kKeyBlock ? block.keys - begin : kKeyBlock;
    const int64_t first_query = block.first + first;
    if (block.causal && first_query + queries - begin < count) count = first_query + queries - begin;
    if (count <= 0) return;
    for_rows(count, [&]<int kR>(int64_t at) {
      Vec s[kR][kW];
      product<kR, kW>(block.k + (begin + at) * block.k_stride, block.k_stride, 1, q, block.head_size, s);
      for (int r = 0; r < kR; ++r)
        for (int w = 0; w < kW; ++w) store(scores + ((at + r) * kW + w) * kLanes, s[r][w]);
    });
    if (block.causal && begin + count - 1 > first_query) hide_future(begin, count, first_query);
    soften(count);
    for_rows(block.head_size, [&]<int kR>(int64_t at) {
      Vec o[kR][kW];
      product<kR, kW>(block.v + begin * block.v_stride + at, 1, block.v_stride, scores, count, o);
      for (int r = 0; r < kR; ++r)
        for (int w = 0; w < kW; ++w) {
          float* to = sums + ((at + r) * kW + w) * kLanes;
          store(to, fma(load(to), load(fade() + w * kLanes), o[r][w]));
        }
    });
  }

  void hide_future(int64_t begin, int64_t count, int64_t first_query) const {
    for (int64_t t = 0; t < count; ++t)
      for (int64_t i = 0; i < kW * kLanes && first_query + i < begin + t; ++i)
        scores[t * kW * kLanes + i] = -__builtin_inff();
  }

  /// scores -> 2^(score - largest so far)
  void soften(int64_t count) const {
    Vec peak[kW], partial[kW];
    for (int w = 0; w < kW; ++w) peak[w] = load(largest() + w * kLanes), partial[w] = Vec{};
    for (int64_t t = 0; t < count; ++t)
      for (int w = 0; w < kW; ++w) peak[w] = max(peak[w], load(scores + (t * kW + w) * kLanes));
    for (int64_t t = 0; t < count; ++t)
      for (int w = 0; w < kW; ++w) {
        float* at = scores + (t * kW + w) * kLanes;
        const Vec p = exp2_of_negative(load(at) - peak[w]);
        partial[w] += p;
        store(at, p);
      }
    for (int w = 0; w < kW; ++w) {
      const Vec factor = exp2_of_negative(load(largest() + w * kLanes) - peak[w]);
      store(fade() + w * kLanes, factor);
      store(total() + w * kLanes, fma(load(total() + w * kLanes), factor, partial[w]));
      store(largest() + w * kLanes, peak[w]);
    }
  }

  void finish() const {
    for (int w = 0; w < kW; ++w) {
      const int64_t at = first + w * kLanes, rows = queries - w * kLanes;
      store_transposed(sums + w * kLanes, kW * kLanes, block.head_size, 1.0f / load(total() + w * kLanes),
                       block.out + at * block.out_stride, block.out_stride, rows < kLanes ? rows : kLanes);
    }
  }
};

/// Calls use(tile) for each tile of the block, the last of which may be narrower.
template <class Use>
inline void for_tiles(const AttentionBlock& block, float* work, Use use) {
  float* scores = work;
  const int64_t of_tile = kStep * (2 * block.head_size + 3);
  float* state = work + kStep * kKeyBlock;
  for (int64_t first = 0; first < block.queries; first += kStep, state += of_tile) {
    const int64_t left = block.queries - first, queries = left < kStep ? left : kStep;
    float *sums = state + kStep * block.head_size, *running = sums + kStep * block.head_size;
    if (queries > 2 * kLanes)
      use(Tile<kWide>{block, first, queries, state, sums, running, scores});
    else if (queries > kLanes)
      use(Tile<2>{block, first, queries, state, sums, running, scores});
    else
      use(Tile<1>{block, first, queries, state, sums, running, scores});
  }
}

/// Scores of one tile; for each tile its queries and sums, and three running values a query.
int64_t work_floats(int64_t queries, int64_t head_size) {
  const int64_t tiles = (queries + kStep - 1) / kStep;
  return kStep * kKeyBlock + tiles * kStep * (2 * head_size + 3);
}

void run(const AttentionBlock& block, float* work) {
  for_tiles(block, work, [](auto tile) { tile.begin(); });
  for (int64_t begin = 0; begin < block.keys; begin += kKeyBlock)  // its keys stay near for all tiles
    for_tiles(block, work, [&](auto tile) { tile.take_keys(begin); });
  for_tiles(block, work, [](auto tile) { tile.finish(); });
}

}  // namespace

extern const AttentionRow ROW;
const AttentionRow ROW = {kLevel, kStep, work_floats, run, nullptr, nullptr, nullptr, nullptr};

}  // namespace sfumato::kernels
