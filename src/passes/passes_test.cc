// Each pass rewrites what it should, and nothing else. That results stay the same is shown by the golden tests, which
// run every network through all passes.
#include "passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "passes/hoist.h"

namespace sfumato::passes {
namespace {

using ir::Builder;
using ir::Graph;
using ir::Value;
using ::testing::HasSubstr;
using ::testing::Not;

std::string run(void (*pass)(Graph&), Builder&& builder) {
  Graph graph = std::move(builder).finish();
  pass(graph);
  EXPECT_TRUE(ir::verify(graph));
  remove_unused(graph);
  EXPECT_TRUE(ir::verify(graph));
  return ir::to_text(graph);
}

Value vector(Builder& b, const char* name, int64_t size) {
  return b.weight(name, {size}, DType::kF32);
}
Value conv(Builder& b, Value x, const char* name) {
  return b.conv2d(x, b.weight(name, {4, 4, 1, 1}, DType::kF32), {}, {});
}

TEST(FuseGroupNormSilu, OnlyWhenNobodyElseReadsTheNorm) {
  const auto graph = [](bool used_twice) {
    Builder b("g");
    const Value n = b.group_norm(b.input("x", {1, 2, 2, 4}), vector(b, "g", 4), vector(b, "b", 4), {.groups = 2});
    b.output("y", b.silu(n));
    if (used_twice) b.output("n", n);
    return run(fuse_group_norm_silu, std::move(b));
  };
  EXPECT_THAT(graph(false), HasSubstr("groups=2, eps=1e-05, silu"));
  EXPECT_THAT(graph(false), Not(HasSubstr("unary")));
  EXPECT_THAT(graph(true), HasSubstr("unary"));
}

TEST(FuseEpilogues, ActivationTimeEmbeddingAndResidual) {
  Builder b("g");
  const Value x = b.input("x", {2, 3, 3, 4}), t = b.input("t", {2, 4});
  const Value biased = b.add(conv(b, x, "w1"), b.reshape(t, {2, 1, 1, 4}));
  b.output("y", b.add(x, conv(b, b.silu(biased), "w2")));
  EXPECT_EQ(run(fuse_epilogues, std::move(b)),
            "graph g\n"
            "%0 = input() {x} : F32 2x3x3x4\n"
            "%1 = input() {t} : F32 2x4\n"
            "%2 = weight() {w1} : F32 4x4x1x1\n"
            "%3 = conv2d(%0, %2, none, %1) {stride=1, pad=0,0,0,0, silu} : F32 2x3x3x4\n"
            "%4 = weight() {w2} : F32 4x4x1x1\n"
            "%5 = conv2d(%3, %4, none, none, %0) {stride=1, pad=0,0,0,0} : F32 2x3x3x4\n"
            "output y = %5\n");
}

TEST(FuseEpilogues, GegluTakesTheLinearButNoResidual) {
  Builder b("g");
  const Value x = b.input("x", {1, 5, 4}), w = b.weight("w", {8, 4}, DType::kF16), bias = vector(b, "b", 8);
  b.output("y", b.add(x, b.geglu(b.linear(x, w, bias))));
  const std::string text = run(fuse_epilogues, std::move(b));
  EXPECT_THAT(text, HasSubstr("linear(%0, %1, %2) {geglu} : F32 1x5x4"));
  EXPECT_THAT(text, HasSubstr("binary(%0, %3) {add}"));
}

TEST(FuseEpilogues, AProductThatOthersReadStays) {
  Builder b("g");
  const Value x = b.input("x", {1, 5, 4});
  const Value y = b.linear(x, b.weight("w", {4, 4}, DType::kF16), {});
  b.output("sum", b.add(x, y));
  b.output("y", y);
  EXPECT_THAT(run(fuse_epilogues, std::move(b)), HasSubstr("binary"));
}

TEST(FuseUpsample, OnlyExactDoubling) {
  const auto graph = [](int64_t height) {
    Builder b("g");
    const Value up = b.upsample_nearest(b.input("x", {1, 3, 3, 4}), height, 6);
    b.output("y", conv(b, up, "w"));
    return run(fuse_upsample, std::move(b));
  };
  EXPECT_THAT(graph(6), HasSubstr("conv2d(%0, %1, none) {stride=1, pad=0,0,0,0, upsample2x} : F32 1x6x6x4"));
  EXPECT_THAT(graph(6), Not(HasSubstr("upsample_nearest")));
  EXPECT_THAT(graph(5), HasSubstr("upsample_nearest"));
}

TEST(Hoist, WhatDependsOnSlowInputsAloneIsAGraphOfItsOwn) {
  const auto halves = [](const std::vector<std::string>& slow) {
    Builder b("g");
    const Value x = b.input("x", {1, 3, 4}), context = b.input("context", {1, 2, 4});
    const Value w = b.weight("w", {4, 4}, DType::kF16);
    const Value k = b.linear(b.silu(context), w, {});
    b.output("y", b.attention(b.linear(x, w, {}), k, k, {}));
    return hoist(std::move(b).finish(), slow);
  };
  const Hoisted hoisted = halves({"context"});
  EXPECT_EQ(ir::to_text(hoisted.once),
            "graph g.once\n"
            "%0 = input() {x} : F32 1x3x4\n"
            "%1 = input() {context} : F32 1x2x4\n"
            "%2 = weight() {w} : F16 4x4\n"
            "%3 = unary(%1) {silu} : F32 1x2x4\n"
            "%4 = linear(%3, %2, none) : F32 1x2x4\n"
            "output hoisted.0 = %4\n");
  EXPECT_EQ(ir::to_text(hoisted.rest),
            "graph g\n"
            "%0 = input() {x} : F32 1x3x4\n"
            "%1 = input() {context} : F32 1x2x4\n"
            "%2 = weight() {w} : F16 4x4\n"
            "%3 = input() {hoisted.0} : F32 1x2x4\n"
            "%4 = linear(%0, %2, none) : F32 1x3x4\n"
            "%5 = attention(%4, %3, %3) {heads=1, scale=1} : F32 1x3x4\n"
            "output y = %5\n");
  EXPECT_TRUE(ir::verify(hoisted.once));
  EXPECT_TRUE(ir::verify(hoisted.rest));
  EXPECT_TRUE(halves({"nobody"}).once.nodes.empty());
  EXPECT_EQ(halves({"x", "context"}).rest.outputs[0].name, "y");
}

TEST(RemoveUnused, KeepsInputs) {
  Builder b("g");
  const Value x = b.input("x", {2});
  b.input("spare", {3});
  b.silu(x);
  b.output("y", b.scale(x, 2));
  EXPECT_EQ(run(remove_unused, std::move(b)),
            "graph g\n%0 = input() {x} : F32 2\n%1 = input() {spare} : F32 3\n%2 = scale(%0) {factor=2} : F32 2\n"
            "output y = %2\n");
}

}  // namespace
}  // namespace sfumato::passes
