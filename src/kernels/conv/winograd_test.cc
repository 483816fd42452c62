#include "kernels/conv/winograd.h"

#include <omp.h>

#include <cstring>

#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

struct Problem {
  WinogradArgs args;
  std::vector<float> x, weights, bias, residual;

  /// `bottom`, `right`: padding there; one is what keeps the size.
  Problem(int64_t batch, int64_t height, int64_t width, int64_t channels, int64_t out_channels, int64_t pad = 1,
          bool doubled = false) {
    const int64_t factor = doubled ? 2 : 1;
    args.batch = batch, args.height = height, args.width = width, args.channels = channels, args.doubled = doubled;
    args.pad_top = args.pad_left = pad;
    args.out_height = height * factor + 2 * pad - 2, args.out_width = width * factor + 2 * pad - 2;
    args.out_channels = out_channels;
    x = normal_floats(static_cast<size_t>(batch * height * width * channels), 1);
    weights = normal_floats(static_cast<size_t>(out_channels * channels * 9), 2,
                            1 / std::sqrt(9.0f * static_cast<float>(channels)));
    bias = normal_floats(static_cast<size_t>(batch * out_channels), 3);
    residual = normal_floats(out_elements(), 4);
    args.x = x.data();
  }
  size_t out_elements() const {
    return static_cast<size_t>(args.batch * args.out_height * args.out_width * args.out_channels);
  }

  std::vector<float> run() {
    const auto transformed =
        aligned_array<float>(static_cast<size_t>(winograd_weights_floats(args.out_channels, args.channels)));
    const auto wide = aligned_array<std::byte>(winograd_weights_scratch(args.channels));
    winograd_weights(weights.data(), DType::kF32, args.out_channels, args.channels, transformed.get(), wide.get());
    std::vector<float> out(out_elements());
    args.weights = transformed.get(), args.out = out.data();
    const auto scratch = aligned_array<std::byte>(winograd_scratch(args));
    winograd(args, scratch.get());
    return out;
  }

  double pixel(int64_t b, int64_t y, int64_t x_at, int64_t c) const {
    const int64_t shift = args.doubled ? 1 : 0;
    if (y < 0 || x_at < 0 || y >= args.height << shift || x_at >= args.width << shift) return 0;
    return x[static_cast<size_t>(((b * args.height + (y >> shift)) * args.width + (x_at >> shift)) * args.channels +
                                 c)];
  }

  std::vector<double> reference() const {
    std::vector<double> out(out_elements());
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t o = at % args.out_channels, xo = at / args.out_channels % args.out_width;
      const int64_t yo = at / args.out_channels / args.out_width % args.out_height;
      const int64_t b = at / args.out_channels / args.out_width / args.out_height;
      double total = args.bias ? double{bias[static_cast<size_t>(b * args.out_channels + o)]} : 0.0;
      for (int64_t tap = 0; tap < 9; ++tap)
        for (int64_t c = 0; c < args.channels; ++c)
          total += pixel(b, yo + tap / 3 - args.pad_top, xo + tap % 3 - args.pad_left, c) *
                   double{weights[static_cast<size_t>((o * args.channels + c) * 9 + tap)]};
      if (args.has_activation) total = total / (1 + std::exp(-total));  // SiLU
      out[i] = total + (args.residual ? double{residual[i]} : 0.0);
    }
    return out;
  }
};

class Winograd : public EachIsa {};

TEST_P(Winograd, IsTheConvolutionForAnySize) {
  for (const auto& [height, width] : {std::pair{1, 1}, {3, 5}, {4, 4}, {7, 9}, {16, 6}, {13, 30}})
    for (const int64_t channels : {1, 7, 16, 33})
      for (const int64_t out_channels : {3, 16, 40}) {
        Problem p(2, height, width, channels, out_channels);
        ASSERT_LT(largest_difference(p.run(), p.reference()), 3e-5)
            << height << "x" << width << " " << channels << " -> " << out_channels;
      }
}

TEST_P(Winograd, Padding) {
  for (const int64_t pad : {0, 1, 2}) {
    Problem p(1, 9, 6, 8, 8, pad);
    EXPECT_LT(largest_difference(p.run(), p.reference()), 3e-5) << pad;
  }
}

TEST_P(Winograd, DoublesItsInput) {
  Problem p(2, 5, 3, 17, 9, 1, true);
  EXPECT_LT(largest_difference(p.run(), p.reference()), 3e-5);
}

TEST_P(Winograd, BiasActivationResidual) {
  Problem p(3, 6, 7, 20, 18);
  p.args.bias = p.bias.data(), p.args.residual = p.residual.data(), p.args.has_activation = true;
  EXPECT_LT(largest_difference(p.run(), p.reference()), 3e-5);
}

TEST_P(Winograd, ErrorStaysSmallOverManyChannels) {
  Problem p(1, 8, 8, 512, 32);
  const std::vector<double> reference = p.reference();
  double largest = 0;
  for (const double y : reference) largest = std::max(largest, std::fabs(y));
  EXPECT_LT(largest_difference(p.run(), reference), 2e-5 * largest);
}

TEST_P(Winograd, BitsDependOnNeitherBatchNorThreads) {
  Problem p(3, 20, 24, 32, 32);
  const std::vector<float> all = p.run();
  const int threads = omp_get_max_threads();
  omp_set_num_threads(3);
  EXPECT_EQ(p.run(), all);
  omp_set_num_threads(threads);
  Problem one(1, 20, 24, 32, 32);
  const size_t image = one.out_elements();
  std::copy_n(p.x.begin() + static_cast<int64_t>(one.x.size()), one.x.size(), one.x.begin());
  one.weights = p.weights;
  EXPECT_TRUE(std::memcmp(one.run().data(), all.data() + image, image * sizeof(float)) == 0);
}

INSTANTIATE_EACH_ISA(Winograd);

}  // namespace
}  // namespace sfumato::kernels
