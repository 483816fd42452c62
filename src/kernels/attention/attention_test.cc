#include "kernels/attention/attention.h"

#include <omp.h>

#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

/// Random q, k and v, the rows of all three `gap` floats longer than needed.
struct Problem {
  AttentionArgs args;
  std::vector<float> q, k, v;

  Problem(int64_t batch, int64_t queries, int64_t keys, int64_t heads, int64_t head_size, int64_t gap = 0,
          float deviation = 1) {
    const int64_t row = heads * head_size + gap;
    args.batch = batch, args.queries = queries, args.keys = keys, args.heads = heads, args.head_size = head_size;
    args.q_stride = args.k_stride = args.v_stride = args.out_stride = row;
    args.scale = 1 / std::sqrt(static_cast<float>(head_size));
    q = normal_floats(static_cast<size_t>(batch * queries * row), 1, deviation);
    k = normal_floats(static_cast<size_t>(batch * keys * row), 2, deviation);
    v = normal_floats(static_cast<size_t>(batch * keys * row), 3);
    args.q = q.data(), args.k = k.data(), args.v = v.data();
  }

  /// What lies between the rows must stay as it is: -7.
  std::vector<float> run() {
    std::vector<float> out(q.size(), -7.0f);
    args.out = out.data();
    const auto scratch = aligned_array<std::byte>(attention_scratch(args));
    attention(args, scratch.get());
    return out;
  }

  std::vector<double> reference() const {
    const AttentionArgs& a = args;
    std::vector<double> out(q.size(), -7.0), p(static_cast<size_t>(a.keys));
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t head = 0; head < a.heads; ++head)
        for (int64_t i = 0; i < a.queries; ++i) {
          const float* query = a.q + (b * a.queries + i) * a.q_stride + head * a.head_size;
          double* row = out.data() + (b * a.queries + i) * a.out_stride + head * a.head_size;
          const int64_t visible = a.causal ? i + 1 : a.keys;
          double largest = -INFINITY, total = 0;
          for (int64_t t = 0; t < visible; ++t) {
            const float* key = a.k + (b * a.keys + t) * a.k_stride + head * a.head_size;
            double score = 0;
            for (int64_t d = 0; d < a.head_size; ++d) score += double{query[d]} * double{key[d]};
            p[t] = score * a.scale;
            largest = std::max(largest, p[t]);
          }
          for (int64_t t = 0; t < visible; ++t) total += p[t] = std::exp(p[t] - largest);
          for (int64_t d = 0; d < a.head_size; ++d) {
            row[d] = 0;
            for (int64_t t = 0; t < visible; ++t)
              row[d] += p[t] / total * a.v[(b * a.keys + t) * a.v_stride + head * a.head_size + d];
          }
        }
    return out;
  }
};

class Attention : public EachIsa {};
INSTANTIATE_EACH_ISA(Attention);

TEST_P(Attention, EveryNumberOfQueriesAndKeysRoundTheVectorWidth) {
  for (int64_t n = 1; n <= 70; ++n) {
    Problem queries(1, n, 13, 1, 8), keys(1, 5, n, 1, 8);
    EXPECT_LT(largest_difference(queries.run(), queries.reference()), 1e-6) << n << " queries";
    EXPECT_LT(largest_difference(keys.run(), keys.reference()), 1e-6) << n << " keys";
  }
}

TEST_P(Attention, EveryHeadSizeRoundTheVectorWidth) {
  for (int64_t n = 1; n <= 70; ++n) {
    Problem p(1, 19, 37, 2, n, 3);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 2e-6) << n;
  }
}

TEST_P(Attention, HeadSizesOfTheModelsAndOddRowStrides) {
  for (const int64_t head_size : {8, 16, 24, 32, 40, 64, 80, 96, 128, 160, 512}) {
    Problem p(2, 50, 77, 2, head_size, 5);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 3e-6) << head_size;
  }
}

TEST_P(Attention, ManyKeysInSeveralBlocks) {
  for (const int64_t keys : {127, 128, 129, 256, 300, 1000}) {
    Problem p(1, 60, keys, 1, 40);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 1e-6) << keys;
  }
}

TEST_P(Attention, CausalRowsSeeNoLaterKeys) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 49, 77, 129, 200}) {
    Problem p(2, tokens, tokens, 2, 16);
    p.args.causal = true;
    EXPECT_LT(largest_difference(p.run(), p.reference()), 2e-6) << tokens;
  }
}

TEST_P(Attention, SlicesOfOneMergedBuffer) {
  Problem p(2, 33, 33, 2, 24);
  const std::vector<double> expected = p.reference();
  std::vector<float> merged;
  for (size_t row = 0; row < 2 * 33; ++row)
    for (const auto* part : {&p.q, &p.k, &p.v})
      merged.insert(merged.end(), part->begin() + row * 48, part->begin() + (row + 1) * 48);
  p.args.q = merged.data(), p.args.k = merged.data() + 48, p.args.v = merged.data() + 96;
  p.args.q_stride = p.args.k_stride = p.args.v_stride = 3 * 48;
  EXPECT_LT(largest_difference(p.run(), expected), 2e-6);
}

TEST_P(Attention, HugeScoresStayFinite) {
  Problem p(1, 40, 150, 1, 8, 0, 100.0f);  // scores of some 1e4: softmax is all but a maximum
  for (bool causal : {false, true}) {
    p.args.keys = causal ? 40 : 150;
    p.args.causal = causal;
    EXPECT_LT(largest_difference(p.run(), p.reference()), 5e-3) << causal;
  }
}

TEST_P(Attention, OneAllowedKeyIsTakenExactly) {
  Problem p(1, 21, 21, 1, 8);
  p.args.causal = true;
  const std::vector<float> out = p.run();
  for (int d = 0; d < 8; ++d) EXPECT_EQ(out[d], p.v[d]);
}

TEST_P(Attention, EqualScoresGiveTheMean) {
  Problem p(1, 3, 200, 1, 4);
  std::fill(p.q.begin(), p.q.end(), 0.0f);
  EXPECT_LT(largest_difference(p.run(), p.reference()), 1e-6);
}

/// The same bits with one thread and with five, and for a few queries taken out of the batch.
void expect_bits_depend_on_the_row_alone(AttentionPrecision precision) {
  Problem p(3, 130, 300, 2, 40);
  p.args.precision = precision;
  omp_set_num_threads(1);
  const std::vector<float> one = p.run();
  omp_set_num_threads(5);
  EXPECT_EQ(p.run(), one);
  omp_set_num_threads(omp_get_num_procs());

  Problem alone = p;  // the last sample's last 7 queries: other lanes, other tiles
  alone.args.batch = 1, alone.args.queries = 7;
  alone.args.q = p.q.data() + (3 * 130 - 7) * 80;
  alone.args.k = p.k.data() + 2 * 300 * 80;
  alone.args.v = p.v.data() + 2 * 300 * 80;
  const std::vector<float> last = alone.run();
  EXPECT_TRUE(std::equal(last.begin(), last.begin() + 7 * 80, one.end() - 7 * 80));
}

TEST_P(Attention, BitsDependNeitherOnThreadsNorOnBatchNorOnPosition) {
  expect_bits_depend_on_the_row_alone(AttentionPrecision::kF32);
}

TEST_P(Attention, CausalPrefixHasTheSameBits) {
  Problem p(1, 150, 150, 1, 16);
  p.args.causal = true;
  const std::vector<float> whole = p.run();
  p.args.queries = p.args.keys = 40;
  const std::vector<float> prefix = p.run();
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.begin() + 40 * 16, whole.begin()));
}

/// The error that rounding q, k, v and the probabilities to bfloat16 may cause, values being of order one.
constexpr double kRounded = 2e-2;

TEST_P(Attention, Bfloat16IsNearAtEverySizeRoundTheTiles) {
  if (GetParam() < Isa::kAvx512Bf16) GTEST_SKIP() << "float, tested above";
  for (int64_t n = 1; n <= 70; ++n) {
    Problem queries(1, n, 13, 1, 8), keys(1, 5, n, 1, 8), head(1, 19, 37, 2, n, 3);
    for (Problem* p : {&queries, &keys, &head}) {
      p->args.precision = AttentionPrecision::kBF16;
      EXPECT_LT(largest_difference(p->run(), p->reference()), kRounded) << n;
    }
  }
}

TEST_P(Attention, Bfloat16OfTheModelsHeadSizesManyKeysAndCausal) {
  if (GetParam() < Isa::kAvx512Bf16) GTEST_SKIP() << "float, tested above";
  for (const int64_t head_size : {8, 40, 64, 80, 128, 160, 512})
    for (const int64_t tokens : {77, 128, 300}) {
      Problem p(2, tokens, tokens, 2, head_size, 5);
      p.args.precision = AttentionPrecision::kBF16;
      p.args.causal = tokens == 300;
      EXPECT_LT(largest_difference(p.run(), p.reference()), kRounded) << head_size << ", " << tokens;
    }
}

TEST_P(Attention, Bfloat16DiffersWhereThereAreTilesAndOnlyThere) {
  Problem p(1, 32, 64, 1, 32);
  const std::vector<float> exact = p.run();
  p.args.precision = AttentionPrecision::kBF16;
  EXPECT_EQ(p.run() == exact, GetParam() < Isa::kAvx512Bf16);
}

TEST_P(Attention, Bfloat16HugeScoresStayFinite) {
  Problem p(1, 40, 300, 1, 8, 0, 100.0f);
  p.args.precision = AttentionPrecision::kBF16;
  EXPECT_LT(largest_difference(p.run(), std::vector<float>(p.q.size(), 0.0f)), 10);
}

TEST_P(Attention, Bfloat16BitsDependNeitherOnThreadsNorOnBatchNorOnPosition) {
  expect_bits_depend_on_the_row_alone(AttentionPrecision::kBF16);
}

}  // namespace
}  // namespace sfumato::kernels
