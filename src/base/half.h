#pragma once
// Scalar conversions of the small float formats. Kernels convert whole rows with SIMD; this is the reference.
#include <bit>
#include <cstdint>

namespace sfumato {

/// IEEE binary16 to float, exact; subnormals, infinities and NaN kept.
float f16_to_f32(uint16_t bits);
/// float to binary16, to nearest even; too large gives infinity.
uint16_t f32_to_f16(float value);

/// bfloat16 to float, exact.
inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
/// float to bfloat16, to nearest even; NaN stays NaN.
uint16_t f32_to_bf16(float value);

/// OCP 8-bit floats. E4M3FN has no infinity; its NaN is 0x7f and 0xff. E5M2 is the upper byte of a binary16.
float f8_e4m3fn_to_f32(uint8_t bits);
inline float f8_e5m2_to_f32(uint8_t bits) {
  return f16_to_f32(static_cast<uint16_t>(bits << 8));
}

}  // namespace sfumato
