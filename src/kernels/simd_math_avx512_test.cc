#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,f16c")
#define ROW kMathAvx512
#define kName "avx512"
#include "kernels/simd_math_test.inl"
