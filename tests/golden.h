#pragma once
// Reading what tools/make_golden.py wrote.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace sfumato {

inline std::string golden_path(const std::string& file) {
  return std::string(SFUMATO_SOURCE_DIR) + "/tests/golden/" + file;
}

inline std::shared_ptr<const SafetensorsFile> open_golden(const std::string& file) {
  auto opened = SafetensorsFile::open(golden_path(file));
  if (!opened) ADD_FAILURE() << opened.error().message;
  return *opened;
}

/// [B,C,H,W] -> [B,H,W,C]
inline Tensor channels_last(const TensorView& planes) {
  const Shape& s = planes.shape;
  const std::vector<float> values = planes.to_floats();
  Tensor out(Shape{s[0], s[2], s[3], s[1]});
  const int64_t area = s[2] * s[3];
  for (int64_t b = 0; b < s[0]; ++b)
    for (int64_t c = 0; c < s[1]; ++c)
      for (int64_t i = 0; i < area; ++i)
        out.f32()[static_cast<size_t>((b * area + i) * s[1] + c)] =
            values[static_cast<size_t>((b * s[1] + c) * area + i)];
  return out;
}

/// The largest difference, as a part of the largest expected value.
inline double relative_error(std::span<const float> got, std::span<const float> expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0, largest = 1e-30;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    worst = std::max(worst, std::abs(double{got[i]} - expected[i]));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return worst / largest;
}

}  // namespace sfumato
