#include "ir/cost.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace sfumato::ir {
namespace {

TEST(Cost, CountsProductsOnly) {
  Builder b("net");
  const Value x = b.input("x", {2, 8, 8, 4});
  const Value w = b.weight("w", {6, 4, 3, 3}, DType::kF16);
  const Value y = b.conv2d(x, w, {}, {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1});
  const Value tokens = b.reshape(b.silu(y), {2, 16, 6});
  const Value context = b.input("context", {2, 5, 6});
  const Value z = b.linear(tokens, b.weight("v", {10, 6}, DType::kF16), {});
  b.output("z", z);
  b.output("a", b.attention(tokens, context, context, {.heads = 3}));
  const int64_t convolution = 2 * 4 * 4 * 6 * (4 * 9), linear = 2 * 16 * 10 * 6, attention = 2 * (2 * 16 * 5 * 6);
  EXPECT_EQ(multiply_adds(std::move(b).finish()), convolution + linear + attention);
}

}  // namespace
}  // namespace sfumato::ir
