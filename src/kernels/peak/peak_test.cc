#include "kernels/peak/peak.h"

#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

class PeakTest : public EachIsa {};
INSTANTIATE_EACH_ISA(PeakTest);

TEST_P(PeakTest, IsASpeedThatExists) {
  const double peak = fma_peak(1);
  EXPECT_GT(peak, 1e8);
  EXPECT_LT(peak, 1e12);  // 32 multiply-adds of 16 lanes a cycle at 10 GHz are no core's
}

}  // namespace
}  // namespace sfumato::kernels
