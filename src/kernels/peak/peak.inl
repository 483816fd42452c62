// The loop whose speed is the peak: as many independent sums as hide the latency of a multiply-add (4 cycles, 2 a cycle).
#include "kernels/peak/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

constexpr int kSums = 12;

void run(int64_t turns) {
  Vec sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = splat(static_cast<float>(i));
  const Vec a = splat(0.5f), b = splat(0.25f);
  for (int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = fma(sums[i], a, b);
      asm volatile("" : "+v"(sums[i]));  // one by one, and none left out
    }
  }
}

constexpr int kFlops = 2 * kSums * kLanes;

}  // namespace
}  // namespace sfumato::kernels
