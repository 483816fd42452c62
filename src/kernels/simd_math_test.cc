#include "kernels/simd_math_test.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/cpu.h"

namespace sfumato::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Every 1021st float there is, of both signs, subnormals and NaN among them: four million.
const std::vector<float>& all_kinds_of_floats() {
  static const std::vector<float> values = [] {
    std::vector<float> v;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021)
      v.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    return v;
  }();
  return values;
}

std::vector<MathRow> rows() {
  std::vector<MathRow> rows = {kMathScalar};
  if (machine_isa() >= Isa::kAvx2) rows.push_back(kMathAvx2);
  if (machine_isa() >= Isa::kAvx512) rows.push_back(kMathAvx512);
  return rows;
}

std::vector<float> map(MathRow::Function f, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  f(x.data(), static_cast<int64_t>(x.size()), out.data());
  return out;
}

/// The distance of two neighbours at |x|.
double ulp(double x) {
  const float f = std::fabs(static_cast<float>(x));
  return static_cast<double>(std::nextafter(f, kInfinity)) - f;
}

/// |f(x) - right(x)| <= bound(x, right(x)) wherever `right` is finite and x in [low, high].
template <class Right, class Bound>
void expect_within(const MathRow& row, MathRow::Function f, float low, float high, Right right, Bound bound) {
  const std::vector<float>& x = all_kinds_of_floats();
  const std::vector<float> y = map(f, x);
  int faults = 0, checked = 0;
  for (size_t i = 0; i < x.size() && faults < 5; ++i) {
    if (!(x[i] >= low && x[i] <= high)) continue;
    ++checked;
    const double expected = right(double{x[i]});
    if (std::fabs(y[i] - expected) <= bound(double{x[i]}, expected)) continue;
    ++faults;
    ADD_FAILURE() << row.level << ": f(" << x[i] << ") is " << y[i] << ", should be " << expected;
  }
  EXPECT_GT(checked, 1000);
}

TEST(SimdMath, ExpIsWithinTwoUlp) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.exp, -87.33f, 88.37f, [](double x) { return std::exp(x); },
        [](double, double y) { return 2 * ulp(y); });
}

TEST(SimdMath, ExpAtTheEnds) {
  for (const MathRow& row : rows()) {
    SCOPED_TRACE(row.level);
    const std::vector<float> y = map(row.exp, {-kInfinity, -1e30f, -87.69f, 88.4f, 1e30f, kInfinity, kNan, 0.0f});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y[i], 0.0f) << i;
    for (int i = 3; i < 6; ++i) EXPECT_EQ(y[i], kInfinity) << i;
    EXPECT_TRUE(std::isnan(y[6]));
    EXPECT_EQ(y[7], 1.0f);
  }
}

TEST(SimdMath, Exp2OfNegativeIsWithinOneAndAHalfUlp) {
  for (const MathRow& row : rows()) {
    SCOPED_TRACE(row.level);
    expect_within(
        row, row.exp2_of_negative, -126.0f, 0.0f, [](double x) { return std::exp2(x); },
        [](double, double y) { return 1.5 * ulp(y); });
    const std::vector<float> y = map(row.exp2_of_negative, {0.0f, -1.0f, -126.6f, -1e30f, -kInfinity, kNan});
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 0.5f);
    for (int i = 2; i < 5; ++i) EXPECT_EQ(y[i], 0.0f) << i;
    EXPECT_TRUE(std::isnan(y[5]));
  }
}

TEST(SimdMath, ReciprocalIsWithinOneUlp) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.reciprocal, 0x1p-126f, 0x1p126f, [](double x) { return 1 / x; },
        [](double, double y) { return ulp(y); });
}

TEST(SimdMath, Sigmoid) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.sigmoid, -kInfinity, kInfinity, [](double x) { return 1 / (1 + std::exp(-x)); },
        [](double, double) { return 2e-7; });
}

TEST(SimdMath, Tanh) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.tanh, -kInfinity, kInfinity, [](double x) { return std::tanh(x); },
        [](double, double) { return 4e-7; });
}

TEST(SimdMath, ErfHasSmallRelativeError) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.erf, -kInfinity, kInfinity, [](double x) { return std::erf(x); },
        [](double, double y) { return 5e-7 * std::fabs(y) + 1e-44; });
}

TEST(SimdMath, Gelu) {
  for (const MathRow& row : rows())
    expect_within(
        row, row.gelu, -1e30f, 1e30f, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); },
        [](double x, double) { return 5e-7 * std::max(1.0, std::fabs(x)); });
}

TEST(SimdMath, NanStaysNan) {
  for (const MathRow& row : rows())
    for (const auto f : {row.exp, row.exp2_of_negative, row.reciprocal, row.sigmoid, row.tanh, row.erf, row.gelu})
      for (const float y : map(f, std::vector<float>(17, kNan))) EXPECT_TRUE(std::isnan(y)) << row.level;
}

}  // namespace
}  // namespace sfumato::kernels
