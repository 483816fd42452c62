#pragma once
#include <cstdint>

#include "kernels/isa.h"

namespace sfumato::kernels {

/// The rows of the norm family.
struct NormRow {
  Isa isa;
  /// x [pixels,channels] -> per channel: the mean, and the sum of squared deviations from it.
  void (*moments)(const float* x, int64_t pixels, int64_t channels, float* mean, float* squares);
  /// out = x * scale + shift per channel, then SiLU if asked.
  void (*apply)(const float* x, int64_t pixels, int64_t channels, const float* scale, const float* shift, bool silu,
                float* out);
  void (*layer_norm)(const float* x, int64_t channels, float eps, const float* gamma, const float* beta, float* out);
};

extern const NormRow kNormScalar, kNormAvx2, kNormAvx512;

}  // namespace sfumato::kernels
