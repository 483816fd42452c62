// The norm family over Vec; included by norm_<level>.cc, which define kLevel and ROW.
#include "kernels/norm/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

void moments(const float* x, int64_t pixels, int64_t channels, float* mean, float* squares) {
  for_lanes(channels, [&](int64_t c, int width) {
    Vec total{};
    for (int64_t p = 0; p < pixels; ++p) total += load_n(x + p * channels + c, width);
    const Vec m = total * (1.0f / static_cast<float>(pixels));
    Vec s{};
    for (int64_t p = 0; p < pixels; ++p) {
      const Vec d = load_n(x + p * channels + c, width) - m;
      s = fma(d, d, s);
    }
    store_n(mean + c, m, width);
    store_n(squares + c, s, width);
  });
}

template <bool kSilu>
void apply_as(const float* x, int64_t pixels, int64_t channels, const float* scale, const float* shift, float* out) {
  for (int64_t p = 0; p < pixels; ++p)
    for_lanes(channels, [&](int64_t c, int width) {
      Vec y = fma(load_n(x + p * channels + c, width), load_n(scale + c, width), load_n(shift + c, width));
      if (kSilu) y = y / (1.0f + exp(-y));
      store_n(out + p * channels + c, y, width);
    });
}

void apply(const float* x, int64_t pixels, int64_t channels, const float* scale, const float* shift, bool silu,
           float* out) {
  if (silu)
    apply_as<true>(x, pixels, channels, scale, shift, out);
  else
    apply_as<false>(x, pixels, channels, scale, shift, out);
}

void layer_norm_row(const float* x, int64_t channels, float eps, const float* gamma, const float* beta, float* out) {
  Vec total{};
  for_lanes(channels, [&](int64_t c, int width) { total += load_n(x + c, width); });
  const float mean = sum(total) / static_cast<float>(channels);
  Vec squares{};
  for_lanes(channels, [&](int64_t c, int width) {
    Vec d = load_n(x + c, width) - mean;
    if (width < kLanes)
      for (int i = width; i < kLanes; ++i) d[i] = 0;
    squares = fma(d, d, squares);
  });
  const float inverse = 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(channels) + eps);
  for_lanes(channels, [&](int64_t c, int width) {
    const Vec normal = (load_n(x + c, width) - mean) * inverse;
    store_n(out + c, fma(normal, load_n(gamma + c, width), load_n(beta + c, width)), width);
  });
}

}  // namespace

extern const NormRow ROW;
const NormRow ROW = {kLevel, moments, apply, layer_norm_row};

}  // namespace sfumato::kernels
