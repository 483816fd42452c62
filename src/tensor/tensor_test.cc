#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace sfumato {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("BAD"), std::nullopt);
}

TEST(DType, ElementsOfUnalignedData) {
  char bytes[64] = {};
  const uint16_t bf16[] = {0x3f80, 0x7f61};
  std::memcpy(bytes + 1, bf16, sizeof bf16);
  EXPECT_EQ(element_as_double(bytes + 1, DType::kBF16, 0), 1.0);
  EXPECT_TRUE(std::isfinite(element_as_double(bytes + 1, DType::kBF16, 1)));
  const int64_t big = -(int64_t{1} << 40);
  std::memcpy(bytes + 3, &big, sizeof big);
  EXPECT_EQ(element_as_double(bytes + 3, DType::kI64, 0), static_cast<double>(big));
  float out[2];
  convert_to_f32(bytes + 1, DType::kBF16, 1, out);
  EXPECT_EQ(out[0], 1.0f);
}

TEST(Shape, NegativeAxesAndText) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.to_string(), "2x3x4");
  EXPECT_EQ(Shape{}.to_string(), "scalar");
  EXPECT_EQ(Shape{}.elements(), 1);
}

TEST(Tensor, OwnsAlignedMemory) {
  Tensor t = Tensor::from({2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  Tensor copy = t.clone();
  copy.f32()[0] = 9;
  EXPECT_EQ(t.f32()[0], 1);
  EXPECT_EQ(std::move(copy).reshaped({4}).shape(), Shape{4});
  EXPECT_EQ(t.view().to_floats(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(Tensor().empty());
}

}  // namespace
}  // namespace sfumato
