#include "sampling/noise.h"

#include <gmock/gmock.h>

#include <cmath>

namespace sfumato::sampling {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> draw(RngKind kind, uint64_t seed, size_t count) {
  std::vector<float> out(count);
  make_generator(kind, seed)->normal(out);
  return out;
}

std::vector<float> first(std::vector<float> values, size_t count) {
  values.resize(count);
  return values;
}

// Values as PyTorch prints them.
TEST(CpuNoise, BlockPath) {
  EXPECT_THAT(draw(RngKind::kCpu, 0, 16),
              Pointwise(FloatNear(5.1e-5f), {-1.1258, -1.1524, -0.2506, -0.4339, 0.8487, 0.6920, -0.3160, -2.1152,
                                             0.3223, -1.2633, 0.3500, 0.3081, 0.1198, 1.2377, 1.1168, -0.2473}));
  EXPECT_THAT(draw(RngKind::kCpu, 42, 16),
              Pointwise(FloatNear(5.1e-5f), {1.9269, 1.4873, 0.9007, -2.1055, 0.6784, -1.2345, -0.0431, -1.6047,
                                             -0.7521, 1.6487, -0.3925, -1.4036, -0.7279, -0.5594, -0.7688, 0.7624}));
  EXPECT_THAT(first(draw(RngKind::kCpu, 43, 16), 4), Pointwise(FloatNear(5.1e-5f), {-0.0166, -0.4668, 2.0909, 0.6149}));
}

TEST(CpuNoise, ScalarPath) {
  EXPECT_THAT(draw(RngKind::kCpu, 0, 8),
              Pointwise(FloatNear(5.1e-5f), {1.5410, -0.2934, -2.1788, 0.5684, -1.0845, -1.3986, 0.4033, 0.8380}));
  EXPECT_THAT(draw(RngKind::kCpu, 42, 4), Pointwise(FloatNear(5.1e-5f), {0.3367, 0.1288, 0.2345, 0.2303}));
}

TEST(CpuNoise, LatentOf512) {
  const auto x = draw(RngKind::kCpu, 42, 4 * 64 * 64);
  double sum = 0, squares = 0;
  for (float v : x) sum += v, squares += double{v} * v;
  const double mean = sum / x.size();
  EXPECT_NEAR(mean, 0.0091, 5.1e-5);
  EXPECT_NEAR(std::sqrt(squares / x.size() - mean * mean), 1.0040, 5.1e-5);
  EXPECT_THAT(std::vector<float>(x.end() - 3, x.end()), Pointwise(FloatNear(5.1e-5f), {-0.6358, 0.9728, -0.2934}));
}

TEST(CpuNoise, StreamGoesOn) {
  const auto both = draw(RngKind::kCpu, 42, 512), one = draw(RngKind::kCpu, 42, 256);
  EXPECT_EQ(first(both, 256), one);
  EXPECT_THAT(std::vector<float>(both.begin() + 256, both.begin() + 260),
              Pointwise(FloatNear(5.1e-5f), {-0.6855, 0.5636, -1.5072, -1.6107}));
  // An odd number of scalars leaves one for the next call, also past a block.
  auto generator = make_generator(RngKind::kCpu, 1);
  std::vector<float> a(3), block(16), b(1);
  generator->normal(a);
  generator->normal(block);
  generator->normal(b);
  const auto scalars = draw(RngKind::kCpu, 1, 4);
  EXPECT_EQ(b[0], scalars[3]);
}

TEST(CpuNoise, LowHalfOfTheSeedCounts) {
  EXPECT_EQ(draw(RngKind::kCpu, 5, 32), draw(RngKind::kCpu, (uint64_t{1} << 32) + 5, 32));
  EXPECT_NE(draw(RngKind::kCpu, 4294967295, 32), draw(RngKind::kCpu, 4294967294, 32));
}

// Published with AUTOMATIC1111's rng_philox.py as the GPU's numbers for seed 0, three rows of four by one call.
TEST(PhiloxNoise, PublishedValues) {
  EXPECT_THAT(
      draw(RngKind::kPhilox, 0, 12),
      Pointwise(FloatNear(1e-6f), {-0.92466259, -0.42534415, -2.6438457, 0.14518388, -0.12086647, -0.57972564,
                                   -0.62285122, -0.32838709, -1.07454231, -0.36314407, -1.67105067, 2.26550497}));
}

TEST(PhiloxNoise, UsesTheWholeSeedAndCountsCalls) {
  EXPECT_NE(draw(RngKind::kPhilox, 5, 4), draw(RngKind::kPhilox, (uint64_t{1} << 32) + 5, 4));
  auto generator = make_generator(RngKind::kPhilox, 5);
  std::vector<float> a(4), b(4);
  generator->normal(a);
  generator->normal(b);
  EXPECT_EQ(a, draw(RngKind::kPhilox, 5, 4));
  EXPECT_NE(a, b);
}

TEST(BatchNoise, EachImageIsItsOwnSeed) {
  for (const RngKind kind : {RngKind::kCpu, RngKind::kPhilox}) {
    const std::vector<uint64_t> seeds = {37, 38, 39};
    BatchNoise noise(kind, seeds);
    for (int call = 0; call < 2; ++call) {
      std::vector<float> batch(3 * 48);
      noise(batch);
      for (int i = 0; i < 3; ++i) {
        auto single = make_generator(kind, seeds[i]);
        std::vector<float> want(48);
        for (int k = 0; k <= call; ++k) single->normal(want);
        EXPECT_EQ(std::vector<float>(batch.begin() + i * 48, batch.begin() + (i + 1) * 48), want);
      }
    }
  }
}

}  // namespace
}  // namespace sfumato::sampling
