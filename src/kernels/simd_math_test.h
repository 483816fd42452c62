#pragma once
// The functions of simd_math.h, called at one level: simd_math_<level>_test.cc builds them.
#include <cstdint>

namespace sfumato::kernels {

struct MathRow {
  const char* level;
  using Function = void (*)(const float* x, int64_t count, float* out);
  Function exp, exp2_of_negative, reciprocal, sigmoid, tanh, erf, gelu;
};

extern const MathRow kMathScalar, kMathAvx2, kMathAvx512;

}  // namespace sfumato::kernels
