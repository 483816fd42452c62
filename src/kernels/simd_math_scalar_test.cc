#define ROW kMathScalar
#define kName "scalar"
#include "kernels/simd_math_test.inl"
