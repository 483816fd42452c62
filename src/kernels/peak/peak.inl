// The loop whose speed is the peak: as many independent sums as hide the latency of a multiply-add (4 cycles, 2 a cycle).
#include "kernels/peak/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

// Each sum is a variable of its own: gcc keeps an array that an asm statement touches in memory, and the loop would
// time loads and stores.
#define EACH_SUM(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) Vec sum##i = splat(i);
#define ADD(i)                \
  sum##i = fma(sum##i, a, b); \
  asm volatile("" : "+v"(sum##i));  // none left out
#define COUNT(i) +1

void run(int64_t turns) {
  const Vec a = splat(0.5f), b = splat(0.25f);
  EACH_SUM(DECLARE)
  for (int64_t t = 0; t < turns; ++t) {
    EACH_SUM(ADD)
  }
}

constexpr int kFlops = 2 * (0 EACH_SUM(COUNT)) * kLanes;

#undef EACH_SUM
#undef DECLARE
#undef ADD
#undef COUNT

}  // namespace
}  // namespace sfumato::kernels
