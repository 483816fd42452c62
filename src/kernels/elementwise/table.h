#pragma once
// The rows of the elementwise family: plain loops over a part of the data, one set an instruction-set level.
#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "kernels/isa.h"

namespace sfumato::kernels {

struct ElementwiseRow {
  Isa isa;
  void (*unary)(UnaryOp op, const float* x, int64_t count, float* out);
  void (*geglu)(const float* x, int64_t channels, float* out);  // one row
  void (*scale)(const float* x, int64_t count, float factor, float* out);
  void (*binary)(BinaryOp op, const float* a, const float* b, bool b_is_one_value, int64_t count, float* out);
  void (*f16_to_f32)(const void* source, int64_t count, float* out);
  void (*bf16_to_f32)(const void* source, int64_t count, float* out);
  void (*f32_to_bf16)(const void* source, int64_t count, uint16_t* out);
};

extern const ElementwiseRow kElementwiseScalar, kElementwiseAvx2, kElementwiseAvx512;

}  // namespace sfumato::kernels
