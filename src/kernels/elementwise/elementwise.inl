// The elementwise family over Vec; included by elementwise_<level>.cc, which define kLevel and ROW.
#include "kernels/activations.h"
#include "kernels/elementwise/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

template <class Function>
void map(Function f, const float* x, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, int width) { store_n(out + i, f(load_n(x + i, width)), width); });
}

void unary_part(UnaryOp op, const float* x, int64_t count, float* out) {
  switch (op) {
    case UnaryOp::kSilu:
      return map(Silu{}, x, count, out);
    case UnaryOp::kGelu:
      return map(Gelu{}, x, count, out);
    case UnaryOp::kGeluTanh:
      return map(GeluTanh{}, x, count, out);
    case UnaryOp::kQuickGelu:
      return map(QuickGelu{}, x, count, out);
    case UnaryOp::kRelu:
      return map(Relu{}, x, count, out);
    case UnaryOp::kTanh:
      return map(Tanh{}, x, count, out);
  }
}

void geglu_row(const float* x, int64_t channels, float* out) {
  for_lanes(channels, [&](int64_t i, int width) {
    store_n(out + i, load_n(x + i, width) * gelu(load_n(x + channels + i, width)), width);
  });
}

void scale_part(const float* x, int64_t count, float factor, float* out) {
  for_lanes(count, [&](int64_t i, int width) { store_n(out + i, load_n(x + i, width) * factor, width); });
}

void binary_part(BinaryOp op, const float* a, const float* b, bool b_is_one_value, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, int width) {
    const Vec y = b_is_one_value ? splat(*b) : load_n(b + i, width);
    const Vec x = load_n(a + i, width);
    store_n(out + i, op == BinaryOp::kAdd ? x + y : x * y, width);
  });
}

typedef uint16_t HalfVec __attribute__((vector_size(kLanes * 2)));
typedef uint32_t BitVec __attribute__((vector_size(kLanes * 4)));

inline HalfVec load_halves(const void* source, int64_t i, int width) {
  HalfVec v{};
  __builtin_memcpy(&v, static_cast<const char*>(source) + 2 * i, static_cast<size_t>(width) * 2);
  return v;
}

inline Vec widen_f16(HalfVec h) {
#if defined(__AVX512F__)
  return (Vec)_mm512_maskz_cvtph_ps(0xffff, (__m256i)h);
#elif defined(__AVX2__)
  return (Vec)_mm256_cvtph_ps((__m128i)h);
#else
  // Shift exponent and mantissa into a float's place and multiply by 2^112; infinities and NaN are set right after.
  const BitVec bits = __builtin_convertvector(h, BitVec);
  const BitVec magnitude = (bits & 0x7fff) << 13;
  const Vec value = (Vec)magnitude * 0x1p112f;
  const BitVec special = (BitVec)(magnitude >= (0x7c00u << 13)) & 0x7f800000u;
  return (Vec)((BitVec)value | special | (bits & 0x8000) << 16);
#endif
}

void f16_to_f32(const void* source, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, int width) { store_n(out + i, widen_f16(load_halves(source, i, width)), width); });
}

void bf16_to_f32(const void* source, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, int width) {
    store_n(out + i, (Vec)(__builtin_convertvector(load_halves(source, i, width), BitVec) << 16), width);
  });
}

void f32_to_bf16(const void* source, int64_t count, uint16_t* out) {
  for_lanes(count, [&](int64_t i, int width) {
    BitVec bits{};
    __builtin_memcpy(&bits, static_cast<const char*>(source) + 4 * i, static_cast<size_t>(width) * 4);
    const BitVec rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const BitVec quiet = bits >> 16 | 0x40;
    const HalfVec half = __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000u ? quiet : rounded, HalfVec);
    __builtin_memcpy(out + i, &half, static_cast<size_t>(width) * 2);
  });
}

}  // namespace

extern const ElementwiseRow ROW;
const ElementwiseRow ROW = {kLevel,      unary_part, geglu_row,   scale_part,
                            binary_part, f16_to_f32, bf16_to_f32, f32_to_bf16};

}  // namespace sfumato::kernels
