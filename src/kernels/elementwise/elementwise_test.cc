#include "kernels/elementwise/elementwise.h"

#include <omp.h>

#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/elementwise/convert.h"
#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

class Elementwise : public EachIsa {};
INSTANTIATE_EACH_ISA(Elementwise);

struct UnaryCase {
  UnaryOp op;
  double (*right)(double);
};
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
const UnaryCase kUnaryCases[] = {
    {UnaryOp::kSilu, [](double x) { return x * sigmoid(x); }},
    {UnaryOp::kGelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {UnaryOp::kGeluTanh,
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {UnaryOp::kQuickGelu, [](double x) { return x * sigmoid(1.702 * x); }},
    {UnaryOp::kRelu, [](double x) { return x > 0 ? x : 0; }},
    {UnaryOp::kTanh, [](double x) { return std::tanh(x); }},
};

TEST_P(Elementwise, UnaryKeepsItsErrorBound) {
  std::vector<float> x;
  for (float v = 1e-30f; v < 1e9f; v *= 1.01f) x.push_back(v), x.push_back(-v);
  x.push_back(0);
  for (const UnaryCase& c : kUnaryCases) {
    std::vector<float> out(x.size());
    unary(c.op, x.data(), static_cast<int64_t>(x.size()), out.data());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(std::fabs(out[i] - c.right(x[i])), 1e-6 * std::max(1.0f, std::fabs(x[i])))
          << static_cast<int>(c.op) << " at " << x[i];
  }
}

TEST_P(Elementwise, UnaryOfEveryLengthLeavesTheRestAlone) {
  for (int64_t n = 0; n <= 70; ++n)
    for (const UnaryCase& c : kUnaryCases) {
      std::vector<float> x = normal_floats(static_cast<size_t>(n + 1), 1), out(x.size(), -7.0f);
      unary(c.op, x.data(), n, out.data());
      for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], c.right(x[i]), 4e-6) << n;
      EXPECT_EQ(out[n], -7.0f);
      unary(c.op, x.data(), n, x.data());  // in place
      EXPECT_TRUE(std::equal(x.begin(), x.begin() + n, out.begin()));
    }
}

TEST_P(Elementwise, NanStaysNan) {
  for (const UnaryCase& c : kUnaryCases) {
    std::vector<float> x(19, std::numeric_limits<float>::quiet_NaN());
    unary(c.op, x.data(), 19, x.data());
    for (float y : x) EXPECT_TRUE(std::isnan(y)) << static_cast<int>(c.op);
  }
}

TEST_P(Elementwise, BitsDependNotOnThreads) {
  const std::vector<float> x = normal_floats(50001, 1);
  std::vector<float> one(x.size()), many(x.size());
  omp_set_num_threads(1);
  unary(UnaryOp::kGelu, x.data(), 50001, one.data());
  omp_set_num_threads(5);
  unary(UnaryOp::kGelu, x.data(), 50001, many.data());
  omp_set_num_threads(omp_get_num_procs());
  EXPECT_EQ(one, many);
}

TEST_P(Elementwise, Geglu) {
  for (int64_t channels = 1; channels <= 70; ++channels) {
    const std::vector<float> x = normal_floats(static_cast<size_t>(3 * 2 * channels), 1);
    std::vector<float> out(static_cast<size_t>(3 * channels));
    geglu(x.data(), 3, channels, out.data());
    for (int64_t r = 0; r < 3; ++r)
      for (int64_t c = 0; c < channels; ++c) {
        const double a = x[r * 2 * channels + c], b = x[(r * 2 + 1) * channels + c];
        ASSERT_NEAR(out[r * channels + c], a * 0.5 * b * (1 + std::erf(b / std::sqrt(2.0))), 4e-6) << channels;
      }
  }
}

TEST_P(Elementwise, Scale) {
  for (int64_t n = 1; n <= 70; ++n) {
    std::vector<float> x = normal_floats(static_cast<size_t>(n), 1);
    const std::vector<float> before = x;
    scale(x.data(), n, 0.18215f, x.data());
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(x[i], before[i] * 0.18215f);
  }
}

TEST_P(Elementwise, BinaryBroadcastsAlongEverySetOfAxes) {
  for (const int64_t inner : {1, 5, 8, 16, 33})
    for (int mask = 0; mask < 16; ++mask)
      for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kMul}) {
        const int64_t dims[4] = {2, 3, 4, inner};
        int64_t b_dims[4], b_count = 1;
        for (int i = 0; i < 4; ++i) b_count *= b_dims[i] = (mask >> i & 1) ? 1 : dims[i];
        const std::vector<float> a = normal_floats(static_cast<size_t>(24 * inner), 1);
        const std::vector<float> b = normal_floats(static_cast<size_t>(b_count), 2);
        std::vector<float> out(a.size());
        binary(op, a.data(), b.data(), dims, b_dims, out.data());
        for (int64_t i = 0; i < 24 * inner; ++i) {
          const int64_t at[4] = {i / (12 * inner), i / (4 * inner) % 3, i / inner % 4, i % inner};
          int64_t j = 0;
          for (int k = 0; k < 4; ++k) j = j * b_dims[k] + (b_dims[k] == 1 ? 0 : at[k]);
          ASSERT_EQ(out[i], op == BinaryOp::kAdd ? a[i] + b[j] : a[i] * b[j]) << "axes " << mask << " of " << inner;
        }
      }
}

TEST_P(Elementwise, CopyRowsConcatenatesAndSlices) {
  const std::vector<float> a = normal_floats(7 * 3, 1), b = normal_floats(7 * 5, 2);
  std::vector<float> both(7 * 8), back(7 * 5);
  copy_rows(a.data(), 3, 7, 3, both.data(), 8);
  copy_rows(b.data(), 5, 7, 5, both.data() + 3, 8);
  for (int r = 0; r < 7; ++r)
    for (int c = 0; c < 8; ++c) EXPECT_EQ(both[r * 8 + c], c < 3 ? a[r * 3 + c] : b[r * 5 + c - 3]);
  copy_rows(both.data() + 3, 8, 7, 5, back.data(), 5);
  EXPECT_EQ(back, b);
}

/// `values` as bytes of `dtype`, starting at an odd address inside the buffer.
std::vector<char> unaligned_bytes(const std::vector<uint32_t>& values, size_t size) {
  std::vector<char> bytes(values.size() * size + 1);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(bytes.data() + 1 + i * size, &values[i], size);
  return bytes;
}

TEST_P(Elementwise, EveryHalfIsWidenedExactlyFromOddAddresses) {
  std::vector<uint32_t> all(65536);
  for (uint32_t i = 0; i < 65536; ++i) all[i] = i;
  const std::vector<char> bytes = unaligned_bytes(all, 2);
  std::vector<float> f16(65536), bf16(65536);
  kernels::convert_to_f32(bytes.data() + 1, DType::kF16, 65536, f16.data());
  kernels::convert_to_f32(bytes.data() + 1, DType::kBF16, 65536, bf16.data());
  for (uint32_t i = 0; i < 65536; ++i) {
    const float h = f16_to_f32(static_cast<uint16_t>(i)), b = bf16_to_f32(static_cast<uint16_t>(i));
    ASSERT_TRUE(std::isnan(h) ? std::isnan(f16[i]) : std::memcmp(&h, &f16[i], 4) == 0) << i;
    ASSERT_TRUE(std::isnan(b) ? std::isnan(bf16[i]) : std::memcmp(&b, &bf16[i], 4) == 0) << i;
  }
}

TEST_P(Elementwise, RoundsToBfloat16AsTheReferenceDoes) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 30011) {
    const auto b = static_cast<uint32_t>(bits);
    float f;
    std::memcpy(&f, &b, 4);
    x.push_back(f);
  }
  std::vector<uint16_t> out(x.size());
  convert_f32_to_bf16(x.data(), static_cast<int64_t>(x.size()), out.data());
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]))
      ASSERT_TRUE(std::isnan(bf16_to_f32(out[i])));
    else
      ASSERT_EQ(out[i], f32_to_bf16(x[i])) << x[i];
  }
}

TEST_P(Elementwise, RoundsHalvesToBfloat16) {
  std::vector<uint32_t> halves;
  for (uint32_t i = 0; i < 0x7c00; i += 7) halves.push_back(i);
  const std::vector<char> bytes = unaligned_bytes(halves, 2);
  std::vector<uint16_t> out(halves.size());
  convert_to_bf16(bytes.data() + 1, DType::kF16, static_cast<int64_t>(halves.size()), out.data());
  for (size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(out[i], f32_to_bf16(f16_to_f32(static_cast<uint16_t>(halves[i]))));
}

TEST_P(Elementwise, EmbeddingTakesRowsOfAnUnalignedTable) {
  const int64_t channels = 21;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    std::vector<uint32_t> raw(5 * channels);
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = dtype == DType::kF32 ? 0x3f800000 + 1234 * i : 0x3c00 + i;
    const std::vector<char> table = unaligned_bytes(raw, dtype_size(dtype));
    const int32_t ids[] = {4, 0, 4, 2};
    std::vector<float> out(4 * channels), expected(raw.size());
    embedding(ids, 4, table.data() + 1, dtype, channels, out.data());
    sfumato::convert_to_f32(table.data() + 1, dtype, raw.size(), expected.data());
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t c = 0; c < channels; ++c)
        EXPECT_EQ(out[i * channels + c], expected[ids[i] * channels + c]) << dtype_name(dtype);
  }
}

TEST_P(Elementwise, GatherRowTakesOneRowOfEachSample) {
  const std::vector<float> x = normal_floats(2 * 3 * 4, 1);
  const int32_t index[] = {2, 0};
  std::vector<float> out(2 * 4);
  gather_row(x.data(), index, 2, 3, 4, out.data());
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(out[c], x[2 * 4 + c]);
    EXPECT_EQ(out[4 + c], x[3 * 4 + c]);
  }
}

// Values of diffusers 0.3x, get_timestep_embedding(torch.tensor([...]), 8, ...).
TEST_P(Elementwise, TimestepEmbeddingEqualsDiffusers) {
  const float t[] = {999, 1.5f};
  std::vector<float> out(16);
  timestep_embedding(t, 2, 8, true, 0, 10000, out.data());
  const std::vector<double> cos_first = {
      0.9996498227119446,   0.8074550628662109,  -0.8444697856903076,  0.541143536567688,
      -0.02646075189113617, -0.5899291038513184, -0.5356031656265259,  0.8409302234649658,
      0.07073719799518585,  0.9887710809707642,  0.9998875260353088,   0.9999988675117493,
      0.9974949955940247,   0.14943812787532806, 0.014999437145888805, 0.001499999314546585};
  EXPECT_LT(largest_difference(out, cos_first), 1e-6);
  timestep_embedding(t, 2, 8, false, 1, 10000, out.data());
  const std::vector<double> sin_first = {
      -0.02646075189113617, 0.684861421585083,   0.8356484770774841,   0.09973391145467758,
      0.9996498227119446,   -0.7286733388900757, -0.549264669418335,   0.9950141310691833,
      0.9974949955940247,   0.06956759840250015, 0.003231646493077278, 0.00014999997802078724,
      0.07073719799518585,  0.9975772500038147,  0.9999947547912598,   1.0};
  EXPECT_LT(largest_difference(out, sin_first), 1e-6);
}

TEST_P(Elementwise, TimestepEmbeddingOfOddSizeEndsWithZero) {
  const float t = 1024;
  std::vector<float> out(5, -7.0f);
  timestep_embedding(&t, 1, 5, true, 0, 10000, out.data());
  const std::vector<double> expected = {0.9873536229133606, -0.6857069730758667, -0.15853337943553925,
                                        -0.7278777360916138, 0.0};
  EXPECT_LT(largest_difference(out, expected), 1e-6);
}

}  // namespace
}  // namespace sfumato::kernels
