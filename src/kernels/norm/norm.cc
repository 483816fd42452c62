#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/norm/table.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kSmall = 8192;  // elements not worth waking other threads for
constexpr int64_t kChunk = 64;    // pixels whose moments are taken together; fixed, so that threads change no bits

const NormRow& table() {
  static constexpr const NormRow* kRows[] = {&kNormScalar, &kNormAvx2, &kNormAvx512};
  return select(kRows);
}

int64_t chunks_of(int64_t pixels) {
  return (pixels + kChunk - 1) / kChunk;
}

struct Images {
  int64_t batch, pixels, channels;
  int64_t chunks() const { return chunks_of(pixels); }
  int64_t pixels_in(int64_t chunk) const { return std::min(kChunk, pixels - chunk * kChunk); }
  /// First element of chunk `chunk` of sample `sample`.
  int64_t at(int64_t sample, int64_t chunk) const { return (sample * pixels + chunk * kChunk) * channels; }
};

struct Normal {
  double mean, inverse_deviation;
};

/// Joins the moments of the channels of one group over all chunks (Chan, Golub and LeVeque 1979), in double.
/// moments [chunks,2,channels], from the first channel of the group on.
Normal join(const Images& x, const float* moments, int64_t width, float eps) {
  const double count = static_cast<double>(x.pixels * width);
  double mean = 0, squares = 0;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    double means = 0;
    for (int64_t c = 0; c < width; ++c) means += moments[2 * chunk * x.channels + c];
    mean += means * static_cast<double>(x.pixels_in(chunk));
  }
  mean /= count;
  for (int64_t chunk = 0; chunk < x.chunks(); ++chunk) {
    const float* of_chunk = moments + 2 * chunk * x.channels;
    double between = 0, within = 0;
    for (int64_t c = 0; c < width; ++c) {
      between += (of_chunk[c] - mean) * (of_chunk[c] - mean);
      within += of_chunk[x.channels + c];
    }
    squares += within + between * static_cast<double>(x.pixels_in(chunk));
  }
  return {mean, 1 / std::sqrt(squares / count + eps)};
}

}  // namespace

size_t group_norm_scratch(int64_t batch, int64_t pixels, int64_t channels) {
  return static_cast<size_t>(2 * batch * (chunks_of(pixels) + 1) * channels);  // moments, then scale and shift
}

void group_norm_scale_shift(const float* data, int64_t batch, int64_t pixels, int64_t channels, int64_t groups,
                            float eps, const float* gamma, const float* beta, float* scale, float* shift,
                            float* scratch) {
  const NormRow& row = table();
  const Images x{batch, pixels, channels};
  const int64_t chunks = x.chunks(), width = channels / groups;
#pragma omp parallel if (batch * pixels * channels > kSmall)
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < batch * chunks; ++i) {
      float* moments = scratch + 2 * i * channels;
      row.moments(data + x.at(i / chunks, i % chunks), x.pixels_in(i % chunks), channels, moments, moments + channels);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < batch * groups; ++i) {
      const int64_t sample = i / groups, first = i % groups * width;
      const Normal normal = join(x, scratch + 2 * sample * chunks * channels + first, width, eps);
      for (int64_t c = first; c < first + width; ++c) {
        const double factor = gamma[c] * normal.inverse_deviation;
        scale[sample * channels + c] = static_cast<float>(factor);
        shift[sample * channels + c] = static_cast<float>(beta[c] - normal.mean * factor);
      }
    }
  }
}

void group_norm(const float* data, int64_t batch, int64_t pixels, int64_t channels, int64_t groups, float eps,
                const float* gamma, const float* beta, bool silu, float* out, float* scratch) {
  const NormRow& row = table();
  const Images x{batch, pixels, channels};
  const int64_t chunks = x.chunks();
  float* scale = scratch + 2 * batch * chunks * channels;
  float* shift = scale + batch * channels;
  group_norm_scale_shift(data, batch, pixels, channels, groups, eps, gamma, beta, scale, shift, scratch);
#pragma omp parallel for schedule(static) if (batch * pixels * channels > kSmall)
  for (int64_t i = 0; i < batch * chunks; ++i) {
    const int64_t sample = i / chunks, chunk = i % chunks, at = x.at(sample, chunk);
    row.apply(data + at, x.pixels_in(chunk), channels, scale + sample * channels, shift + sample * channels, silu,
              out + at);
  }
}

void layer_norm(const float* x, int64_t rows, int64_t channels, float eps, const float* gamma, const float* beta,
                float* out) {
  const NormRow& row = table();
#pragma omp parallel for schedule(static) if (rows * channels > kSmall)
  for (int64_t r = 0; r < rows; ++r) row.layer_norm(x + r * channels, channels, eps, gamma, beta, out + r * channels);
}

}  // namespace sfumato::kernels
