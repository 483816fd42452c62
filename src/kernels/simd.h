#pragma once
// Kernels are written once over `Vec`, a vector as wide as the instruction set of the file that includes this, and
// compiled once for each level: x_scalar.cc (x86-64 baseline), x_avx2.cc, x_avx512.cc include the same x.inl.
//
// Everything here is in an anonymous namespace and nothing of the standard library is instantiated, so that no AVX code
// can end up in a function that baseline code calls (a weak symbol keeps whichever copy the linker met first).
#include <immintrin.h>
#include <stdint.h>

/// For kernels whose arrays of Vec must stay in registers.
#define SFUMATO_INLINE inline __attribute__((always_inline))

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
#if defined(__AVX512F__)
  return (Vec)_mm512_set1_ps(x);
#elif defined(__AVX2__)
  return (Vec)_mm256_set1_ps(x);
#else
  return (Vec)_mm_set1_ps(x);
#endif
}

/// The greater and the lesser; `b` where either is NaN, so that max(constant, x) keeps the NaN of x.
/// (With a full mask: gcc 12 warns about the form without one.)
[[maybe_unused]] inline Vec max(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return (Vec)_mm_max_ps((__m128)a, (__m128)b);
#endif
}
[[maybe_unused]] inline Vec min(Vec a, Vec b) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Vec)_mm256_min_ps((__m256)a, (__m256)b);
#else
  return (Vec)_mm_min_ps((__m128)a, (__m128)b);
#endif
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

/// The first `n` < kLanes elements, then zeros; and the reverse.
[[maybe_unused]] inline Vec load_part(const float* p, int n) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#elif defined(__AVX2__)
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return (Vec)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes));
#else
  Vec v{};
  for (int i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
[[maybe_unused]] inline void store_part(float* p, Vec v, int n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes), (__m256)v);
#else
  for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// Calls step(i, width) for i = 0, kLanes, ...; width is kLanes but for the last.
template <class Step>
SFUMATO_INLINE void for_lanes(int64_t n, Step step) {
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

#include "kernels/simd_math.h"
