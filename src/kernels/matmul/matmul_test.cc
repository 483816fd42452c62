#include "kernels/matmul/matmul.h"

#include <omp.h>

#include <cstring>

#include "kernels/elementwise/convert.h"
#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

/// out [rows,results] in rows of `out_stride` floats; what lies between must stay as it is: -7.
std::vector<float> run(MatmulArgs args, const std::vector<float>& weights) {
  const bool geglu = args.end.geglu;
  const auto packed = aligned_array<float>(static_cast<size_t>(packed_weights_floats(args.columns, args.depth, geglu)));
  const auto packing = aligned_array<std::byte>(pack_weights_scratch(args.depth, DType::kF32) + 1);
  pack_weights(weights.data(), DType::kF32, args.columns, args.depth, geglu, packed.get(), packing.get());
  std::vector<float> out(static_cast<size_t>(args.rows * args.out_stride), -7.0f);
  args.weights = packed.get(), args.out = out.data();
  const auto scratch = aligned_array<std::byte>(matmul_scratch(args));
  matmul(args, scratch.get());
  return out;
}

double gelu(double x) {
  return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
}

struct Problem {
  MatmulArgs args;
  std::vector<float> a, weights, bias, residual;

  Problem(int64_t rows, int64_t depth, int64_t columns, int64_t gap, bool geglu = false) {
    args.rows = rows, args.depth = depth, args.columns = columns;
    args.a_stride = depth + gap, args.out_stride = (geglu ? columns / 2 : columns) + gap;
    a = normal_floats(static_cast<size_t>(rows * args.a_stride), 1);
    weights = normal_floats(static_cast<size_t>(columns * depth), 2, 1 / std::sqrt(static_cast<float>(depth)));
    bias = normal_floats(static_cast<size_t>(columns), 3);
    residual = normal_floats(static_cast<size_t>(rows * args.out_stride), 4);
    args.a = a.data();
    args.end.geglu = geglu;
  }

  double sum(int64_t row, int64_t column) const {
    double total = args.end.bias ? bias[static_cast<size_t>(column)] : 0;
    for (int64_t k = 0; k < args.depth; ++k)
      total += double{a[static_cast<size_t>(row * args.a_stride + k)]} *
               double{weights[static_cast<size_t>(column * args.depth + k)]};
    return total;
  }

  std::vector<double> reference() const {
    std::vector<double> out(static_cast<size_t>(args.rows * args.out_stride), -7.0);
    const int64_t results = args.end.geglu ? args.columns / 2 : args.columns;
    for (int64_t r = 0; r < args.rows; ++r)
      for (int64_t c = 0; c < results; ++c) {
        double v = sum(r, c);
        if (args.end.geglu) v *= gelu(sum(r, results + c));
        if (args.end.has_activation) v = v / (1 + std::exp(-v));  // SiLU
        const auto at = static_cast<size_t>(r * args.out_stride + c);
        out[at] = v + (args.end.residual ? double{residual[at]} : 0.0);
      }
    return out;
  }
};

class Matmul : public EachIsa {};

TEST_P(Matmul, IsTheProductAroundTheTile) {
  for (const int64_t rows : {1, 2, 6, 7, 13, 14, 15, 29})
    for (const int64_t columns : {1, 7, 8, 16, 17, 33, 70})
      for (const int64_t depth : {1, 17, 40}) {
        Problem p(rows, depth, columns, 3);
        ASSERT_LT(largest_difference(run(p.args, p.weights), p.reference()), 2e-5)
            << rows << "x" << depth << "x" << columns;
      }
}

TEST_P(Matmul, BiasActivationResidual) {
  Problem p(19, 33, 45, 0);
  p.args.end.bias = p.bias.data(), p.args.end.residual = p.residual.data(), p.args.end.has_activation = true;
  EXPECT_LT(largest_difference(run(p.args, p.weights), p.reference()), 2e-5);
}

TEST_P(Matmul, Geglu) {
  for (const int64_t columns : {2, 14, 16, 34, 64, 82}) {
    Problem p(17, 30, columns, 1, true);
    p.args.end.bias = p.bias.data(), p.args.end.residual = p.residual.data();
    EXPECT_LT(largest_difference(run(p.args, p.weights), p.reference()), 2e-5) << columns;
  }
}

TEST_P(Matmul, BitsOfARowDependOnNeitherRowsNorThreads) {
  const Problem p(100, 640, 96, 0);
  const int threads = omp_get_max_threads();
  const std::vector<float> all = run(p.args, p.weights);
  omp_set_num_threads(3);
  EXPECT_EQ(run(p.args, p.weights), all);
  omp_set_num_threads(threads);
  MatmulArgs one = p.args;
  one.rows = 1, one.a += 57 * one.a_stride;
  EXPECT_EQ(run(one, p.weights), std::vector<float>(all.begin() + 57 * 96, all.begin() + 58 * 96));
}

TEST_P(Matmul, WeightsOf16BitsAreWidenedExactly) {
  constexpr int64_t kColumns = 45, kDepth = 19;
  std::vector<uint16_t> half(kColumns * kDepth + 1);
  std::vector<float> wide(kColumns * kDepth);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    auto* at = reinterpret_cast<std::byte*>(half.data()) + 1;  // as in a file: anywhere
    for (size_t i = 0; i < wide.size(); ++i) {
      const auto bits = static_cast<uint16_t>(0x3000 + i);
      std::memcpy(at + 2 * i, &bits, 2);
    }
    convert_to_f32(at, dtype, static_cast<int64_t>(wide.size()), wide.data());
    const auto count = static_cast<size_t>(packed_weights_floats(kColumns, kDepth, false));
    const auto a = aligned_array<float>(count), b = aligned_array<float>(count);
    const auto scratch = aligned_array<std::byte>(pack_weights_scratch(kDepth, dtype));
    pack_weights(at, dtype, kColumns, kDepth, false, a.get(), scratch.get());
    pack_weights(wide.data(), DType::kF32, kColumns, kDepth, false, b.get(), scratch.get());
    EXPECT_TRUE(std::equal(a.get(), a.get() + count, b.get()));
  }
}

INSTANTIATE_EACH_ISA(Matmul);

}  // namespace
}  // namespace sfumato::kernels
