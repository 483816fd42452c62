#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sfumato {
namespace {

TEST(Half, KnownValues) {
  EXPECT_EQ(f16_to_f32(0x0001), 5.9604645e-08f);
  EXPECT_EQ(f16_to_f32(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_f32(0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7e00)));
  EXPECT_EQ(bf16_to_f32(0x3f80), 1.0f);
  EXPECT_TRUE(std::isfinite(bf16_to_f32(0x7f61)));  // 3.0e38 stays finite in float
}

TEST(Half, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      EXPECT_EQ(f32_to_f16(value), bits);
    } else {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);      // tie, down to even
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);  // tie, up to even
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);  // rounds to infinity
  EXPECT_EQ(f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(NAN))));
}

TEST(Float8, KnownValues) {
  EXPECT_EQ(f8_e4m3fn_to_f32(0x01), 0.001953125f);
  EXPECT_EQ(f8_e4m3fn_to_f32(0x08), 0.015625f);
  EXPECT_EQ(f8_e4m3fn_to_f32(0x38), 1.0f);
  EXPECT_EQ(f8_e4m3fn_to_f32(0xb8), -1.0f);
  EXPECT_EQ(f8_e4m3fn_to_f32(0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(f8_e4m3fn_to_f32(0x7f)));
  EXPECT_TRUE(std::isnan(f8_e4m3fn_to_f32(0xff)));
  EXPECT_EQ(f8_e5m2_to_f32(0x01), 1.52587890625e-05f);
  EXPECT_EQ(f8_e5m2_to_f32(0x3c), 1.0f);
  EXPECT_EQ(f8_e5m2_to_f32(0x7b), 57344.0f);
  EXPECT_EQ(f8_e5m2_to_f32(0x7c), INFINITY);
}

}  // namespace
}  // namespace sfumato
