#pragma once
// For tests: the pictures that tools/golden/image.py made, and the formula behind them.
#include <string>

#include "image/image.h"

namespace sfumato {

inline std::string golden_image(const std::string& name) {
  return std::string(SFUMATO_SOURCE_DIR "/tests/golden/image/") + name;
}

inline Image pattern(int width = 19, int height = 13) {
  Image image(width, height, 3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      image.at(x, y)[0] = static_cast<uint8_t>(x * 37 + y * 11);
      image.at(x, y)[1] = static_cast<uint8_t>(x * 5 + y * 59);
      image.at(x, y)[2] = static_cast<uint8_t>(x * x + y * 3);
    }
  return image;
}

}  // namespace sfumato
