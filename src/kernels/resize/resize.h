#pragma once
// Nearest upsampling, channels last.
#include <cstdint>

namespace sfumato::kernels {

/// x [batch,h,w,channels] -> out [batch,out_h,out_w,channels], source index floor(i * in / out). Not in place.
void upsample_nearest(const float* x, int64_t batch, int64_t h, int64_t w, int64_t channels, int64_t out_h,
                      int64_t out_w, float* out);
/// x [h,w,channels] -> out [2h,2w,channels], each pixel four times, rounded to bfloat16.
void upsample2x_to_bf16(const float* x, int64_t h, int64_t w, int64_t channels, uint16_t* out);

}  // namespace sfumato::kernels
