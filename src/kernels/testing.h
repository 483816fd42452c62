#pragma once
// For tests of kernels: every level of the machine, seeded data, aligned scratch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"
#include "base/cpu.h"

namespace sfumato::kernels {

/// A test that runs once for each level of the machine; puts the machine's own level back.
class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > machine_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
    set_active_isa(GetParam());
  }
  void TearDown() override { set_active_isa(machine_isa()); }
};
#define INSTANTIATE_EACH_ISA(fixture)                                 \
  INSTANTIATE_TEST_SUITE_P(Isa, fixture, testing::ValuesIn(kAllIsas), \
                           [](const testing::TestParamInfo<Isa>& info) { return std::string(isa_name(info.param)); })

inline std::vector<float> normal_floats(size_t count, unsigned seed, float deviation = 1, float mean = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> out(count);
  for (float& x : out) x = normal(generator);
  return out;
}

/// The largest |a - b|; infinity where either is not finite.
template <class A, class B>
double largest_difference(const A& a, const B& b) {
  CHECK(a.size() == b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    most = std::isfinite(d) ? std::max(most, d) : INFINITY;
  }
  return most;
}

}  // namespace sfumato::kernels
