#include "kernels/norm/norm.h"

#include <omp.h>

#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

struct Problem {
  int64_t batch, pixels, channels, groups;
  float eps = 1e-5f;
  std::vector<float> x, gamma, beta;

  Problem(int64_t batch, int64_t pixels, int64_t channels, int64_t groups, float mean = 0.5f, float deviation = 2)
      : batch(batch), pixels(pixels), channels(channels), groups(groups) {
    x = normal_floats(static_cast<size_t>(batch * pixels * channels), 1, deviation, mean);
    gamma = normal_floats(static_cast<size_t>(channels), 2, 1, 1);
    beta = normal_floats(static_cast<size_t>(channels), 3);
  }

  std::vector<float> scratch() const { return std::vector<float>(group_norm_scratch(batch, pixels, channels)); }

  std::vector<float> run(bool silu = false) const {
    std::vector<float> out(x.size()), work = scratch();
    group_norm(x.data(), batch, pixels, channels, groups, eps, gamma.data(), beta.data(), silu, out.data(),
               work.data());
    return out;
  }

  std::vector<double> reference(bool silu = false) const {
    std::vector<double> out(x.size());
    const int64_t width = channels / groups;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t g = 0; g < groups; ++g) {
        const auto each = [&](auto use) {
          for (int64_t p = 0; p < pixels; ++p)
            for (int64_t c = g * width; c < (g + 1) * width; ++c) use((b * pixels + p) * channels + c, c);
        };
        double mean = 0, variance = 0;
        each([&](int64_t i, int64_t) { mean += x[i]; });
        mean /= static_cast<double>(pixels * width);
        each([&](int64_t i, int64_t) { variance += (x[i] - mean) * (x[i] - mean); });
        variance /= static_cast<double>(pixels * width);
        each([&](int64_t i, int64_t c) {
          const double y = (x[i] - mean) / std::sqrt(variance + eps) * gamma[c] + beta[c];
          out[i] = silu ? y / (1 + std::exp(-y)) : y;
        });
      }
    return out;
  }
};

class Norm : public EachIsa {};
INSTANTIATE_EACH_ISA(Norm);

TEST_P(Norm, GroupsOfEveryWidth) {
  for (int64_t width = 1; width <= 70; ++width) {
    const Problem p(2, 9, 2 * width, 2);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 3e-6) << width;
  }
}

TEST_P(Norm, EveryNumberOfPixelsRoundTheChunk) {
  for (const int64_t pixels : {1, 2, 63, 64, 65, 127, 128, 129, 1000}) {
    const Problem p(1, pixels, 40, 4);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 5e-6) << pixels;
    EXPECT_LT(largest_difference(p.run(true), p.reference(true)), 5e-6) << pixels;
  }
}

TEST_P(Norm, AMeanFarFromZeroLosesNoMoreThanItMust) {
  const Problem p(1, 4096, 32, 4, 1000.0f, 1.0f);
  EXPECT_LT(largest_difference(p.run(), p.reference()), 1e-3);  // float holds 1000 to 6e-5
}

TEST_P(Norm, ConstantInputGivesBeta) {
  Problem p(1, 100, 8, 2);
  std::fill(p.x.begin(), p.x.end(), 3.0f);
  EXPECT_LT(largest_difference(p.run(), p.reference()), 1e-4);
}

TEST_P(Norm, InPlace) {
  Problem p(2, 70, 24, 3);
  const std::vector<float> expected = p.run(true);
  std::vector<float> work = p.scratch();
  group_norm(p.x.data(), 2, 70, 24, 3, p.eps, p.gamma.data(), p.beta.data(), true, p.x.data(), work.data());
  EXPECT_EQ(p.x, expected);
}

TEST_P(Norm, ScaleAndShiftAreTheSameNorm) {
  const Problem p(2, 130, 30, 3);
  std::vector<float> scale(60), shift(60), work = p.scratch(), out(p.x.size());
  group_norm_scale_shift(p.x.data(), 2, 130, 30, 3, p.eps, p.gamma.data(), p.beta.data(), scale.data(), shift.data(),
                         work.data());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = i / (130 * 30) * 30 + i % 30;
    out[i] = p.x[i] * scale[at] + shift[at];
  }
  EXPECT_LT(largest_difference(out, p.reference()), 3e-6);
}

TEST_P(Norm, BitsDependNeitherOnThreadsNorOnBatch) {
  Problem p(3, 500, 48, 4);
  omp_set_num_threads(1);
  const std::vector<float> one = p.run(true);
  omp_set_num_threads(5);
  EXPECT_EQ(p.run(true), one);
  omp_set_num_threads(omp_get_num_procs());
  p.batch = 1;
  p.x.erase(p.x.begin(), p.x.begin() + 2 * 500 * 48);
  EXPECT_EQ(p.run(true), std::vector<float>(one.begin() + 2 * 500 * 48, one.end()));
}

TEST_P(Norm, LayerNormOfEveryWidth) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const int64_t rows = 11;
    const std::vector<float> x = normal_floats(static_cast<size_t>(rows * channels), 1, 2, 0.5f);
    const std::vector<float> gamma = normal_floats(channels, 2, 1, 1), beta = normal_floats(channels, 3);
    std::vector<float> out(x.size());
    layer_norm(x.data(), rows, channels, 1e-5f, gamma.data(), beta.data(), out.data());
    std::vector<double> expected(x.size());
    for (int64_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < channels; ++c) mean += x[r * channels + c] / static_cast<double>(channels);
      for (int64_t c = 0; c < channels; ++c)
        variance += std::pow(x[r * channels + c] - mean, 2) / static_cast<double>(channels);
      for (int64_t c = 0; c < channels; ++c)
        expected[r * channels + c] = (x[r * channels + c] - mean) / std::sqrt(variance + 1e-5) * gamma[c] + beta[c];
    }
    EXPECT_LT(largest_difference(out, expected), channels == 1 ? 1e-3 : 1e-5) << channels;
  }
}

TEST_P(Norm, LayerNormWithAFarMeanAndManyRows) {
  const int64_t rows = 300, channels = 768;
  const std::vector<float> x = normal_floats(rows * channels, 1, 1, 100), ones(channels, 1.0f), zeros(channels, 0.0f);
  std::vector<float> out(x.size());
  layer_norm(x.data(), rows, channels, 1e-5f, ones.data(), zeros.data(), out.data());
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, square = 0;
    for (int64_t c = 0; c < channels; ++c) {
      mean += out[r * channels + c] / static_cast<double>(channels);
      square += std::pow(out[r * channels + c], 2) / static_cast<double>(channels);
    }
    EXPECT_NEAR(mean, 0, 2e-5);
    EXPECT_NEAR(square, 1, 2e-5);
  }
}

}  // namespace
}  // namespace sfumato::kernels
