#pragma once
// Group and layer normalisation, channels last, float. Statistics are summed in a fixed order: they depend neither on
// the batch nor on the number of threads.
#include <cstddef>
#include <cstdint>

namespace sfumato::kernels {

/// x [batch,pixels,channels] -> out, each group of channels/groups channels of a sample normalised over its pixels,
/// times gamma [channels] plus beta [channels], then SiLU if `silu`. In place is allowed. `scratch` holds
/// group_norm_scratch(...) floats.
void group_norm(const float* x, int64_t batch, int64_t pixels, int64_t channels, int64_t groups, float eps,
                const float* gamma, const float* beta, bool silu, float* out, float* scratch);
/// The same as an affine map of each channel, to be applied by whoever reads x next:
/// group_norm(x)[b,p,c] = x[b,p,c] * scale[b,c] + shift[b,c]. scale and shift [batch,channels].
void group_norm_scale_shift(const float* x, int64_t batch, int64_t pixels, int64_t channels, int64_t groups, float eps,
                            const float* gamma, const float* beta, float* scale, float* shift, float* scratch);
/// For both.
size_t group_norm_scratch(int64_t batch, int64_t pixels, int64_t channels);

/// x [rows,channels] -> out, each row normalised, times gamma plus beta. In place is allowed.
void layer_norm(const float* x, int64_t rows, int64_t channels, float eps, const float* gamma, const float* beta,
                float* out);

}  // namespace sfumato::kernels
