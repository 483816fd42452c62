#pragma once
// Between float and the 16-bit types. Sources may be unaligned.
#include <cstdint>

#include "tensor/dtype.h"

namespace sfumato::kernels {

/// F32, F16 or BF16 -> float, exact.
void convert_to_f32(const void* source, DType dtype, int64_t count, float* out);
/// F32, F16 or BF16 -> bfloat16, to nearest even.
void convert_to_bf16(const void* source, DType dtype, int64_t count, uint16_t* out);
inline void convert_f32_to_bf16(const float* source, int64_t count, uint16_t* out) {
  convert_to_bf16(source, DType::kF32, count, out);
}

}  // namespace sfumato::kernels
