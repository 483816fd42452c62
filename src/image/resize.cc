#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sfumato {
namespace {

double sinc(double x) {
  return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}
double lanczos3(double x) {
  return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// As PIL, weights are whole numbers of 22 fractional bits.
constexpr int kFractionBits = 22;

/// The source pixels of one target pixel and their weights.
struct Taps {
  int first = 0;
  std::vector<int32_t> weights;
};

std::vector<Taps> make_taps(int from, int to) {
  const double scale = static_cast<double>(from) / to, stretch = std::max(1.0, scale);
  std::vector<Taps> out;
  std::vector<double> weights;
  for (int i = 0; i < to; ++i) {
    const double center = (i + 0.5) * scale;
    Taps taps;
    taps.first = std::max(0, static_cast<int>(center - 3 * stretch + 0.5));
    const int last = std::min(from, static_cast<int>(center + 3 * stretch + 0.5));
    weights.clear();
    double total = 0;
    for (int x = taps.first; x < last; ++x) {
      weights.push_back(lanczos3((x - center + 0.5) / stretch));
      total += weights.back();
    }
    for (const double w : weights)
      taps.weights.push_back(static_cast<int32_t>(std::lround(w / total * (1 << kFractionBits))));
    out.push_back(std::move(taps));
  }
  return out;
}

Image resize_width(const Image& image, int width) {
  if (width == image.width) return image;
  constexpr int64_t kHalf = 1 << (kFractionBits - 1);
  const std::vector<Taps> taps = make_taps(image.width, width);
  Image out(width, image.height, image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < width; ++x) {
      const Taps& t = taps[static_cast<size_t>(x)];
      for (int c = 0; c < image.channels; ++c) {
        const uint8_t* source = image.at(t.first, y) + c;
        int64_t sum = kHalf;
        for (const int32_t weight : t.weights) {
          sum += weight * *source;
          source += image.channels;
        }
        out.at(x, y)[c] = static_cast<uint8_t>(std::clamp<int64_t>(sum >> kFractionBits, 0, 255));
      }
    }
  return out;
}

Image transpose(const Image& image) {
  Image out(image.height, image.width, image.channels);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) std::copy_n(image.at(x, y), image.channels, out.at(y, x));
  return out;
}

}  // namespace

Image resize_lanczos(const Image& image, int width, int height) {
  Image out = resize_width(image, width);
  return height == image.height ? out : transpose(resize_width(transpose(out), height));
}

}  // namespace sfumato
