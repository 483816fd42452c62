#include "kernels/resize/resize.h"

#include <cstring>

#include "kernels/elementwise/convert.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kSmall = 8192;  // elements not worth waking other threads for

/// row [w,channels] -> out [2w,channels]
template <class Element>
void double_row(const Element* row, int64_t w, int64_t channels, Element* out) {
  const auto bytes = static_cast<size_t>(channels) * sizeof(Element);
  for (int64_t i = 0; i < w; ++i) {
    std::memcpy(out + 2 * i * channels, row + i * channels, bytes);
    std::memcpy(out + (2 * i + 1) * channels, row + i * channels, bytes);
  }
}

void upsample2x(const float* x, int64_t rows, int64_t w, int64_t channels, float* out) {
#pragma omp parallel for schedule(static) if (rows * w * channels > kSmall)
  for (int64_t r = 0; r < rows; ++r) {
    float* first = out + 4 * r * w * channels;
    double_row(x + r * w * channels, w, channels, first);
    std::memcpy(first + 2 * w * channels, first, static_cast<size_t>(2 * w * channels) * sizeof(float));
  }
}

}  // namespace

void upsample_nearest(const float* x, int64_t batch, int64_t h, int64_t w, int64_t channels, int64_t out_h,
                      int64_t out_w, float* out) {
  if (out_h == 2 * h && out_w == 2 * w) return upsample2x(x, batch * h, w, channels, out);
#pragma omp parallel for schedule(static) if (batch * out_h * out_w * channels > kSmall)
  for (int64_t r = 0; r < batch * out_h; ++r) {
    const float* source = x + (r / out_h * h + r % out_h * h / out_h) * w * channels;
    for (int64_t i = 0; i < out_w; ++i)
      std::memcpy(out + (r * out_w + i) * channels, source + i * w / out_w * channels,
                  static_cast<size_t>(channels) * sizeof(float));
  }
}

void upsample2x_to_bf16(const float* x, int64_t h, int64_t w, int64_t channels, uint16_t* out) {
#pragma omp parallel for schedule(static) if (h * w * channels > kSmall)
  for (int64_t y = 0; y < h; ++y) {
    // The row is rounded once, into the second half of its doubled row, and spread from there front to back.
    uint16_t* first = out + 4 * y * w * channels;
    uint16_t* rounded = first + w * channels;
    convert_f32_to_bf16(x + y * w * channels, w * channels, rounded);
    const auto pixel = static_cast<size_t>(channels) * sizeof(uint16_t);
    for (int64_t i = 0; i < w; ++i) {
      std::memmove(first + 2 * i * channels, rounded + i * channels, pixel);
      std::memmove(first + (2 * i + 1) * channels, first + 2 * i * channels, pixel);
    }
    std::memcpy(first + 2 * w * channels, first, 2 * static_cast<size_t>(w) * pixel);
  }
}

}  // namespace sfumato::kernels
