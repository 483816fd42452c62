#pragma once
// Kernels that touch each element once. Float, channels last; `out` may be the input unless said otherwise. Results do
// not depend on the number of threads.
#include <cstdint>

#include "tensor/dtype.h"

namespace sfumato::kernels {

enum class UnaryOp { kSilu, kGelu, kGeluTanh, kQuickGelu, kRelu, kTanh };

/// out[i] = f(x[i]); kGelu is exact (erf). Absolute error below 1e-6 of max(1, |x|); NaN stays NaN.
void unary(UnaryOp op, const float* x, int64_t count, float* out);
/// x [rows,2C] = (a, b) -> out [rows,C] = a * gelu(b). Not in place.
void geglu(const float* x, int64_t rows, int64_t channels, float* out);
/// out[i] = x[i] * factor
void scale(const float* x, int64_t count, float factor, float* out);

enum class BinaryOp { kAdd, kMul };
/// a [d0,d1,d2,d3] op b -> out; b's extents `b_dims` are a's or 1.
void binary(BinaryOp op, const float* a, const float* b, const int64_t dims[4], const int64_t b_dims[4], float* out);

/// Copies rows of `width` floats between row strides (in floats): concatenation and slicing along channels.
void copy_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* out, int64_t out_stride);

/// ids [count], table [vocabulary,channels] in F32, F16 or BF16, maybe unaligned -> out [count,channels].
void embedding(const int32_t* ids, int64_t count, const void* table, DType dtype, int64_t channels, float* out);

/// x [batch,rows,channels], index [batch] in [0, rows) -> out [batch,channels]
void gather_row(const float* x, const int32_t* index, int64_t batch, int64_t rows, int64_t channels, float* out);

/// t [count] -> out [count,dim]: cos and sin of t * exp(-ln(max_period) i / (dim/2 - shift)), i < dim/2; cosines first
/// if `cos_first`; a zero at the end of an odd dim. diffusers' get_timestep_embedding, whose frequencies and angles are
/// rounded to float: at t = 999 that alone moves a sine by 3e-5, so they are here too.
void timestep_embedding(const float* t, int64_t count, int64_t dim, bool cos_first, float shift, float max_period,
                        float* out);

}  // namespace sfumato::kernels
