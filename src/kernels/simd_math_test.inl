// Included by simd_math_<level>_test.cc, which choose the level by pragma and define ROW and kName.
#include "kernels/simd.h"
#include "kernels/simd_math_test.h"

namespace sfumato::kernels {
namespace {

template <Vec (*kFunction)(Vec)>
void map(const float* x, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, int width) { store_n(out + i, kFunction(load_n(x + i, width)), width); });
}

}  // namespace

extern const MathRow ROW;
const MathRow ROW = {kName,    map<exp>, map<exp2_of_negative>, map<reciprocal>, map<sigmoid>, map<tanh>,
                     map<erf>, map<gelu>};

}  // namespace sfumato::kernels
