#pragma once
// Elementary functions over Vec (see simd.h, which includes this). The polynomials are minimax fits of our own;
// simd_math_test.cc holds the stated bounds over the whole range, at every level.
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

/// Adding kRound to |x| < 2^22 rounds x to an integer, to nearest even, and leaves that integer + 127 in the low bits.
constexpr float kRound = 12582912.0f + 127.0f;
/// 2^n, where shifted = n + kRound, n in -127..128; the ends give 0 and infinity.
[[maybe_unused]] inline Vec power_of_two(Vec shifted) {
  return (Vec)((IntVec)shifted << 23);
}

/// 1 / x to 1 ulp for 2^-126 <= |x| <= 2^126.
[[maybe_unused]] inline Vec reciprocal(Vec x) {
#if defined(__AVX512F__)
  const Vec guess = (Vec)_mm512_maskz_rcp14_ps(0xffff, (__m512)x);  // one step of Newton's beats a division by half
  return fma(fma(-x, guess, splat(1.0f)), guess, guess);
#else
  return 1.0f / x;
#endif
}

/// e^x to 2 ulp. 0 below -87.68 (no subnormals), infinity above 88.37, NaN for NaN.
/// e^x = 2^n e^r, n = round(x / ln 2), ln 2 in two parts (Cody and Waite 1980); fit of degree 6, error 3e-9.
[[maybe_unused]] inline Vec exp(Vec x) {
  const Vec bounded = min(splat(89.0f), max(splat(-88.0f), x));
  const Vec shifted = fma(bounded, splat(1.44269504f), splat(kRound));
  const Vec n = shifted - kRound;
  Vec r = fma(n, splat(-0.693359375f), bounded);
  r = fma(n, splat(2.12194440e-4f), r);
  Vec p = splat(1.38146102e-3f);
  p = fma(p, r, splat(8.36870980e-3f));
  p = fma(p, r, splat(4.16683874e-2f));
  p = fma(p, r, splat(1.66665207e-1f));
  p = fma(p, r, splat(4.99999935e-1f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return p * power_of_two(shifted);
}

/// 2^x for x <= 0, to 1.5 ulp. 0 below -126.5, NaN for NaN. Fit of degree 6, error 2.6e-9.
[[maybe_unused]] inline Vec exp2_of_negative(Vec x) {
  const Vec bounded = max(splat(-127.0f), x);
  const Vec shifted = bounded + kRound;
  const Vec r = bounded - (shifted - kRound);
  Vec p = splat(1.55946721e-4f);
  p = fma(p, r, splat(1.34066436e-3f));
  p = fma(p, r, splat(9.61769299e-3f));
  p = fma(p, r, splat(5.55031055e-2f));
  p = fma(p, r, splat(2.40226528e-1f));
  p = fma(p, r, splat(6.93147215e-1f));
  p = fma(p, r, splat(1.0f));
  return p * power_of_two(shifted);
}

/// 1 / (1 + e^-x), absolute error below 2e-7. NaN for NaN.
[[maybe_unused]] inline Vec sigmoid(Vec x) {
  return reciprocal(1.0f + exp(min(splat(87.0f), -x)));
}

/// Absolute error below 4e-7. NaN for NaN.
[[maybe_unused]] inline Vec tanh(Vec x) {
  return 1.0f - 2.0f * reciprocal(1.0f + exp(min(splat(87.0f), x + x)));
}

/// erf(x), relative error below 5e-7. NaN for NaN. x P(x^2) / Q(x^2) up to |x| = 3.95, beyond which it is 1.
[[maybe_unused]] inline Vec erf(Vec x) {
  const Vec bounded = min(splat(3.95f), max(splat(-3.95f), x));
  const Vec s = bounded * bounded;
  Vec p = splat(2.03522334e-6f);
  p = fma(p, s, splat(2.84133819e-4f));
  p = fma(p, s, splat(3.77292873e-3f));
  p = fma(p, s, splat(5.27655881e-2f));
  p = fma(p, s, splat(1.90696364e-1f));
  p = fma(p, s, splat(1.12837915f));
  Vec q = splat(3.79002045e-5f);
  q = fma(q, s, splat(1.16267141e-3f));
  q = fma(q, s, splat(1.49836297e-2f));
  q = fma(q, s, splat(1.14209604e-1f));
  q = fma(q, s, splat(5.02333022e-1f));
  q = fma(q, s, splat(1.0f));
  return min(splat(1.0f), max(splat(-1.0f), bounded * p * reciprocal(q)));
}

/// x Phi(x), with the normal distribution's Phi.
[[maybe_unused]] inline Vec gelu(Vec x) {
  return 0.5f * x * (1.0f + erf(x * 0.70710678f));
}

}  // namespace
}  // namespace sfumato::kernels
