#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sfumato {

/// 8-bit pixels, row by row, channels interleaved: 1 grey, 3 RGB, 4 RGB and alpha.
struct Image {
  int width = 0, height = 0, channels = 3;
  std::vector<uint8_t> pixels;

  Image() = default;
  Image(int w, int h, int c)
      : width(w),
        height(h),
        channels(c),
        pixels(static_cast<size_t>(w) * static_cast<size_t>(h) * static_cast<size_t>(c)) {}
  uint8_t* at(int x, int y) {
    return &pixels[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) *
                   static_cast<size_t>(channels)];
  }
  const uint8_t* at(int x, int y) const { return const_cast<Image*>(this)->at(x, y); }
};

}  // namespace sfumato
