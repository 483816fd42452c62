#pragma GCC target("avx2,fma,f16c")
#define ROW kMathAvx2
#define kName "avx2"
#include "kernels/simd_math_test.inl"
