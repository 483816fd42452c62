#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"

namespace sfumato::ir {
namespace {

using ::testing::HasSubstr;

TEST(Builder, InfersShapes) {
  Builder b("net");
  const Value x = b.input("x", {2, 9, 8, 4});
  const Value w = b.weight("w", {6, 4, 3, 3}, DType::kF16);
  const Value y = b.conv2d(x, w, {}, {.stride = 2, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1});
  EXPECT_EQ(b.shape(y), (Shape{2, 5, 4, 6}));
  const Value tokens = b.reshape(y, {2, 20, 6});
  EXPECT_EQ(b.shape(b.attention(tokens, tokens, tokens, {.heads = 3})), (Shape{2, 20, 6}));
  EXPECT_EQ(b.shape(b.geglu(tokens)), (Shape{2, 20, 3}));
  EXPECT_EQ(b.shape(b.concat({y, y})), (Shape{2, 5, 4, 12}));
  EXPECT_EQ(b.shape(b.upsample_nearest(y, 10, 7)), (Shape{2, 10, 7, 6}));
  EXPECT_EQ(b.shape(b.timestep_embedding(b.input("t", {2}), {.dim = 32})), (Shape{2, 32}));
}

TEST(Builder, TheSameWeightTwiceIsOneNode) {
  Builder b("net");
  EXPECT_EQ(b.weight("w", {3}, DType::kF32), b.weight("w", {3}, DType::kF32));
}

TEST(BuilderDeathTest, WrongShapesAreABug) {
  Builder b("net");
  const Value x = b.input("x", {2, 3});
  const Value w = b.weight("w", {5, 4}, DType::kF32);
  EXPECT_DEATH(b.linear(x, w, {}), "expected x \\[...,K\\], weight \\[N,K\\]");
}

TEST(Verify, NamesTheFaultyNode) {
  Builder b("net");
  const Value x = b.input("x", {2, 3});
  b.output("y", b.silu(x));
  Graph graph = std::move(b).finish();
  EXPECT_TRUE(verify(graph));
  graph.nodes[1].shape = {2, 4};
  EXPECT_THAT(verify(graph).error().message, HasSubstr("graph net, %1: says 2x4, its inputs give 2x3"));
  graph.nodes[1].inputs[0] = {1};
  EXPECT_THAT(verify(graph).error().message, HasSubstr("comes later"));
}

TEST(Text, OneLineANode) {
  Builder b("net");
  const Value x = b.input("x", {2, 3});
  b.output("y", b.linear(x, b.weight("proj.weight", {4, 3}, DType::kBF16), {}));
  EXPECT_EQ(to_text(std::move(b).finish()),
            "graph net\n"
            "%0 = input() {x} : F32 2x3\n"
            "%1 = weight() {proj.weight} : BF16 4x3\n"
            "%2 = linear(%0, %1, none) : F32 2x4\n"
            "output y = %2\n");
}

}  // namespace
}  // namespace sfumato::ir
