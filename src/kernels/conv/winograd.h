#pragma once
// 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3) in float (Lavin and Gray, "Fast algorithms for convolutional
// neural networks", 2016): a quarter of the products. Error about 1e-5 of the largest output, much as a direct sum.
#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "tensor/dtype.h"

namespace sfumato::kernels {

/// x [batch,height,width,channels], transformed weights -> out [batch,out_height,out_width,out_channels] =
/// activation(sums + bias) + residual; zeros outside of x. A picture's bits do not depend on the batch.
struct WinogradArgs {
  const float *x = nullptr, *weights = nullptr;
  float* out = nullptr;
  int64_t batch = 1, height = 0, width = 0, channels = 0;  // of x as stored
  bool doubled = false;                                    ///< x is doubled in height and width (nearest) first
  int64_t pad_top = 1, pad_left = 1;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  const float* bias = nullptr;  ///< [batch,out_channels]
  bool has_activation = false;
  UnaryOp activation = UnaryOp::kSilu;
  const float* residual = nullptr;  ///< as out, which it may be
};

/// Floats that the transformed weights take, at the instruction set in use: 36 for each 9.
int64_t winograd_weights_floats(int64_t out_channels, int64_t channels);
/// [out_channels,channels,3,3] in F32, F16 or BF16, maybe unaligned -> `out`, aligned to 64, for the instruction set
/// in use. `scratch` holds winograd_weights_scratch() bytes.
void winograd_weights(const void* weights, DType dtype, int64_t out_channels, int64_t channels, float* out,
                      void* scratch);
size_t winograd_weights_scratch(int64_t channels);

/// `scratch` holds winograd_scratch(args) bytes, aligned to 64.
void winograd(const WinogradArgs& args, void* scratch);
/// With the threads, omp_get_max_threads(), and the instruction set that are to run it.
size_t winograd_scratch(const WinogradArgs& args);

}  // namespace sfumato::kernels
