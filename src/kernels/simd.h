#pragma once
// Kernels are written once over `Vec`, a vector as wide as the instruction set of the file that includes this, and
// compiled once for each level: x_scalar.cc (x86-64 baseline), x_avx2.cc, x_avx512.cc include the same x.inl.
//
// Everything here is in an anonymous namespace and nothing of the standard library is instantiated, so that no AVX code
// can end up in a function that baseline code calls (a weak symbol keeps whichever copy the linker met first).
#include <immintrin.h>
#include <stdint.h>

namespace sfumato::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4)));

[[maybe_unused]] inline Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[maybe_unused]] inline void store(float* p, Vec v) {
  __builtin_memcpy(p, &v, sizeof v);
}
[[maybe_unused]] inline Vec splat(float x) {
  return Vec{} + x;
}
[[maybe_unused]] inline Vec max(Vec a, Vec b) {
  return a > b ? a : b;
}
[[maybe_unused]] inline Vec min(Vec a, Vec b) {
  return a < b ? a : b;
}
/// a * b + c; one rounding where the level has FMA.
[[maybe_unused]] inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
  return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

[[maybe_unused]] inline float sum(Vec v) {
  float total = 0;
  for (int i = 0; i < kLanes; ++i) total += v[i];
  return total;
}
[[maybe_unused]] inline float largest(Vec v) {
  float best = v[0];
  for (int i = 1; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

/// The first `n` < kLanes elements, then zeros; and the reverse.
[[maybe_unused]] inline Vec load_part(const float* p, int64_t n) {
  Vec v{};
  __builtin_memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
  return v;
}
[[maybe_unused]] inline void store_part(float* p, Vec v, int64_t n) {
  __builtin_memcpy(p, &v, static_cast<size_t>(n) * sizeof(float));
}

/// e^x, within 2 units in the last place; 0 below -87.3, infinity above 88.7, NaN for NaN.
/// Cody and Waite's reduction x = n ln 2 + r, and the Taylor polynomial of degree 7 on |r| <= ln 2 / 2.
[[maybe_unused]] inline Vec exp(Vec x) {
  const Vec clamped = x != x ? x : min(max(x, splat(-87.3f)), splat(88.7f));
  const Vec shifted = fma(clamped, splat(1.44269504f), splat(12582912.0f));  // 1.5 * 2^23: rounds to an integer
  const Vec n = shifted - 12582912.0f;
  Vec r = fma(n, splat(-0.693359375f), clamped);
  r = fma(n, splat(2.12194440e-4f), r);
  Vec p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  // 2^n in two factors, so that n = 128 does not overflow on the way.
  const IntVec exponent = __builtin_convertvector(n, IntVec);
  const IntVec half = exponent >> 1, rest = exponent - half;
  const Vec result = p * (Vec)((half + 127) << 23) * (Vec)((rest + 127) << 23);
  const Vec bounded = x < -87.3f ? Vec{} : result;
  const Vec with_infinity = x > 88.72283f ? splat(__builtin_inff()) : bounded;
  return x != x ? x : with_infinity;
}

/// erf(x), absolute error below 3e-7. |x| < 1: the Taylor series (Abramowitz and Stegun 7.1.5); beyond: one minus the
/// Chebyshev fit of erfc with relative error below 1.2e-7 (Numerical Recipes, 3rd edition, section 6.2.2).
[[maybe_unused]] inline Vec erf(Vec x) {
  const Vec a = x < 0 ? -x : x;
  const Vec t = 1.0f / fma(a, splat(0.5f), splat(1.0f));
  Vec p = splat(0.17087277f);
  p = fma(p, t, splat(-0.82215223f));
  p = fma(p, t, splat(1.48851587f));
  p = fma(p, t, splat(-1.13520398f));
  p = fma(p, t, splat(0.27886807f));
  p = fma(p, t, splat(-0.18628806f));
  p = fma(p, t, splat(0.09678418f));
  p = fma(p, t, splat(0.37409196f));
  p = fma(p, t, splat(1.00002368f));
  p = fma(p, t, splat(-1.26551223f));
  const Vec tail = 1.0f - t * exp(fma(-a, a, p));
  const Vec s = x * x;
  Vec q = splat(1.0f / 76204800.0f);  // the sum of (-1)^n x^(2n) / (n! (2n + 1)), n = 10 .. 0
  q = fma(q, s, splat(-1.0f / 6894720.0f));
  q = fma(q, s, splat(1.0f / 685440.0f));
  q = fma(q, s, splat(-1.0f / 75600.0f));
  q = fma(q, s, splat(1.0f / 9360.0f));
  q = fma(q, s, splat(-1.0f / 1320.0f));
  q = fma(q, s, splat(1.0f / 216.0f));
  q = fma(q, s, splat(-1.0f / 42.0f));
  q = fma(q, s, splat(0.1f));
  q = fma(q, s, splat(-1.0f / 3.0f));
  q = fma(q, s, splat(1.0f));
  const Vec near = x * q * 1.12837917f;
  const Vec far = x < 0 ? -tail : tail;
  return a < 1.0f ? near : far;
}

/// Calls step(i, width) for i = 0, kLanes, ...; width is kLanes but for the last.
template <class Step>
inline void for_lanes(int64_t n, Step step) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(i, kLanes);
  if (i < n) step(i, static_cast<int>(n - i));
}
[[maybe_unused]] inline Vec load_n(const float* p, int width) {
  return width == kLanes ? load(p) : load_part(p, width);
}
[[maybe_unused]] inline void store_n(float* p, Vec v, int width) {
  if (width == kLanes)
    store(p, v);
  else
    store_part(p, v, width);
}

}  // namespace
}  // namespace sfumato::kernels
