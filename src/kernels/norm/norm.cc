#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/norm/table.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kChunk = 64;  // pixels whose moments are taken together: they fit into the second-level cache

const NormRow& table() {
  static constexpr const NormRow* kRows[] = {&kNormScalar, &kNormAvx2, &kNormAvx512};
  return select(kRows);
}

int64_t chunks_of(int64_t pixels) {
  return (pixels + kChunk - 1) / kChunk;
}

/// Joins the moments of all chunks and channels of a group (Chan, Golub and LeVeque 1979), in double.
struct Moments {
  double count = 0, mean = 0, squares = 0;
  void add(double other_count, double other_mean, double other_squares) {
    const double total = count + other_count, delta = other_mean - mean;
    squares += other_squares + delta * delta * count * other_count / total;
    mean += delta * other_count / total;
    count = total;
  }
};

}  // namespace

size_t group_norm_scratch(int64_t batch, int64_t pixels, int64_t channels) {
  // mean and squares of every chunk and channel, then scale and shift of every sample and channel
  return static_cast<size_t>(2 * batch * (chunks_of(pixels) + 1) * channels);
}

void group_norm(const float* x, int64_t batch, int64_t pixels, int64_t channels, int64_t groups, float eps,
                const float* gamma, const float* beta, bool silu, float* out, float* scratch) {
  const NormRow& row = table();
  const int64_t chunks = chunks_of(pixels), width = channels / groups;
  float* chunk_moments = scratch;                           // [batch,chunks,2,channels]
  float* affine = scratch + 2 * batch * chunks * channels;  // [batch,2,channels]
  const auto pixels_in = [&](int64_t chunk) { return std::min(kChunk, pixels - chunk * kChunk); };

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < batch * chunks; ++i) {
      const int64_t chunk = i % chunks;
      float* mean = chunk_moments + 2 * i * channels;
      row.moments(x + (i / chunks * pixels + chunk * kChunk) * channels, pixels_in(chunk), channels, mean,
                  mean + channels);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < batch * groups; ++i) {
      const int64_t sample = i / groups, first = i % groups * width;
      Moments total;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        const float* mean = chunk_moments + 2 * (sample * chunks + chunk) * channels;
        for (int64_t c = first; c < first + width; ++c)
          total.add(static_cast<double>(pixels_in(chunk)), mean[c], mean[channels + c]);
      }
      const double inverse = 1 / std::sqrt(total.squares / total.count + eps);
      float* scale = affine + 2 * sample * channels;
      for (int64_t c = first; c < first + width; ++c) {
        scale[c] = static_cast<float>(gamma[c] * inverse);
        scale[channels + c] = static_cast<float>(beta[c] - total.mean * gamma[c] * inverse);
      }
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < batch * chunks; ++i) {
      const int64_t sample = i / chunks, chunk = i % chunks;
      const int64_t at = (sample * pixels + chunk * kChunk) * channels;
      const float* scale = affine + 2 * sample * channels;
      row.apply(x + at, pixels_in(chunk), channels, scale, scale + channels, silu, out + at);
    }
  }
}

void layer_norm(const float* x, int64_t rows, int64_t channels, float eps, const float* gamma, const float* beta,
                float* out) {
  const NormRow& row = table();
#pragma omp parallel for schedule(static) if (rows * channels > 8192)
  for (int64_t r = 0; r < rows; ++r) row.layer_norm(x + r * channels, channels, eps, gamma, beta, out + r * channels);
}

}  // namespace sfumato::kernels
