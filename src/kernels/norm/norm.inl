// The norm family over Vec; included by norm_<level>.cc, which define kLevel and ROW.
#include "kernels/norm/table.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

/// Moments of kN vectors of channels, the last of which has `width` lanes. Twice through: the second time it is near.
template <int kN>
SFUMATO_INLINE void moments_of(const float* x, int64_t pixels, int64_t channels, int width, float* mean,
                               float* squares) {
  const auto at = [&](int64_t p, int n) { return load_n(x + p * channels + n * kLanes, n + 1 < kN ? kLanes : width); };
  Vec m[kN], s[kN];
  for (int n = 0; n < kN; ++n) m[n] = s[n] = Vec{};
  for (int64_t p = 0; p < pixels; ++p)
    for (int n = 0; n < kN; ++n) m[n] += at(p, n);
  for (int n = 0; n < kN; ++n) m[n] *= 1.0f / static_cast<float>(pixels);
  for (int64_t p = 0; p < pixels; ++p)
    for (int n = 0; n < kN; ++n) {
      const Vec d = at(p, n) - m[n];
      s[n] = fma(d, d, s[n]);
    }
  for (int n = 0; n < kN; ++n) {
    store_n(mean + n * kLanes, m[n], n + 1 < kN ? kLanes : width);
    store_n(squares + n * kLanes, s[n], n + 1 < kN ? kLanes : width);
  }
}

void moments(const float* x, int64_t pixels, int64_t channels, float* mean, float* squares) {
  constexpr int kN = 4;
  int64_t c = 0;
  for (; c + kN * kLanes <= channels; c += kN * kLanes)
    moments_of<kN>(x + c, pixels, channels, kLanes, mean + c, squares + c);
  for (; c + kLanes <= channels; c += kLanes) moments_of<1>(x + c, pixels, channels, kLanes, mean + c, squares + c);
  if (c < channels) moments_of<1>(x + c, pixels, channels, static_cast<int>(channels - c), mean + c, squares + c);
}

template <bool kSilu>
void apply_as(const float* x, int64_t pixels, int64_t channels, const float* scale, const float* shift, float* out) {
  for (int64_t p = 0; p < pixels; ++p)
    for_lanes(channels, [&](int64_t c, int width) {
      Vec y = fma(load_n(x + p * channels + c, width), load_n(scale + c, width), load_n(shift + c, width));
      if (kSilu) y *= sigmoid(y);
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

/// The corrected two-pass algorithm (Chan, Golub and LeVeque 1983): deviations from a mean that is not quite right are
/// summed too, and put right what it lacks.
void layer_norm_row(const float* x, int64_t channels, float eps, const float* gamma, const float* beta, float* out) {
  const float count = static_cast<float>(channels);
  Vec total{};
  for_lanes(channels, [&](int64_t c, int width) { total += load_n(x + c, width); });
  const float near_mean = sum(total) / count;
  Vec deviations{}, squares{};
  for_lanes(channels, [&](int64_t c, int width) {
    Vec d = load_n(x + c, width) - near_mean;
    for (int i = width; i < kLanes; ++i) d[i] = 0;
    deviations += d;
    squares = fma(d, d, squares);
  });
  const float lacking = sum(deviations) / count, mean = near_mean + lacking;
  const float variance = sum(squares) / count - lacking * lacking;
  const float inverse = 1.0f / __builtin_sqrtf(variance + eps);
  for_lanes(channels, [&](int64_t c, int width) {
    const Vec normal = (load_n(x + c, width) - mean) * inverse;
    store_n(out + c, fma(normal, load_n(gamma + c, width), load_n(beta + c, width)), width);
  });
}

}  // namespace

extern const NormRow ROW;
const NormRow ROW = {kLevel, moments, apply, layer_norm_row};

}  // namespace sfumato::kernels
