#pragma once
// Float matrix products with weights packed once and everything that follows them done while the sums are near.
#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "tensor/dtype.h"

namespace sfumato::kernels {

/// What becomes of the sums: out = activation(sum + bias) + residual.
struct SumsEnd {
  const float* bias = nullptr;  ///< [columns]
  bool has_activation = false;
  UnaryOp activation = UnaryOp::kSilu;
  bool geglu = false;               ///< instead of an activation: columns are (a; b), out = a * gelu(b), half as many
  const float* residual = nullptr;  ///< as out, which it may be
};

/// a [rows,depth], packed weights of [columns,depth] -> out [rows, columns, or half as many with geglu]. Rows of a are
/// `a_stride` floats apart, rows of out and of the residual `out_stride`. A result's bits depend on its row of a, its
/// column of the weights and the instruction set alone.
struct MatmulArgs {
  const float *a = nullptr, *weights = nullptr;
  float* out = nullptr;
  int64_t rows = 0, depth = 0, columns = 0;
  int64_t a_stride = 0, out_stride = 0;
  SumsEnd end;
};

/// Floats that the packed weights take, at the instruction set in use.
int64_t packed_weights_floats(int64_t columns, int64_t depth, bool geglu);
/// [columns,depth] in F32, F16 or BF16, maybe unaligned -> panels of float for the instruction set in use; `out` is
/// aligned to 64. `scratch` holds pack_weights_scratch() bytes.
void pack_weights(const void* weights, DType dtype, int64_t columns, int64_t depth, bool geglu, float* out,
                  void* scratch);
size_t pack_weights_scratch(int64_t depth, DType dtype);

/// `scratch` holds matmul_scratch(args) bytes, aligned to 64.
void matmul(const MatmulArgs& args, void* scratch);
/// With the threads, omp_get_max_threads(), and the instruction set that are to run it.
size_t matmul_scratch(const MatmulArgs& args);

}  // namespace sfumato::kernels
