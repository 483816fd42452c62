// Convolutions and linear layers of sizes that our own kernels take, through the whole backend, beside the same graph
// at the scalar level, where oneDNN computes them all.
#include "backend/cpu/product.h"

#include <map>

#include "ir/builder.h"
#include "kernels/testing.h"

namespace sfumato::cpu {
namespace {

using ir::Builder;
using ir::Value;

/// Random tensors, made when first asked for.
class RandomWeights final : public WeightSource {
 public:
  void add(const std::string& name, const Shape& shape) {
    int64_t fan_in = 1;
    for (int i = 1; i < shape.rank(); ++i) fan_in *= shape[i];
    const auto seed = static_cast<unsigned>(values_.size());
    values_[name] = {shape, kernels::normal_floats(static_cast<size_t>(shape.elements()), seed,
                                                   1 / std::sqrt(static_cast<float>(fan_in)))};
  }
  std::optional<TensorView> find(const std::string& name) const override {
    const auto& [shape, data] = values_.at(name);
    return TensorView{data.data(), shape, DType::kF32};
  }
  std::vector<std::string> names() const override { return {}; }

 private:
  std::map<std::string, std::pair<Shape, std::vector<float>>> values_;
};

/// A graph of one input [batch,...] and one output, and its weights.
struct Network {
  Builder builder{"g"};
  std::shared_ptr<RandomWeights> weights = std::make_shared<RandomWeights>();
  Value weight(const std::string& name, const Shape& shape) {
    weights->add(name, shape);
    return builder.weight(name, shape, DType::kF32);
  }
};

/// A block of a U-Net at the edge of what Winograd takes: doubled, time embedding, residual, a shortcut of 1x1.
Network convolutions(int64_t batch) {
  Network n;
  Builder& b = n.builder;
  const Value x = b.input("x", {batch, 17, 16, 40});
  const Value time = b.input("t", {batch, 48});
  const ir::Conv2d same{.stride = 1, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  const Value large =
      b.conv2d(b.upsample_nearest(x, 34, 32), n.weight("up", {40, 40, 3, 3}), n.weight("ub", {40}), same);
  const Value first = b.add(b.conv2d(large, n.weight("w1", {48, 40, 3, 3}), n.weight("b1", {48}), same),
                            b.reshape(time, {batch, 1, 1, 48}));
  const Value second = b.conv2d(b.silu(first), n.weight("w2", {48, 48, 3, 3}), n.weight("b2", {48}), same);
  b.output("y", b.add(b.conv2d(large, n.weight("short", {48, 40, 1, 1}), n.weight("sb", {48}), {}), second));
  return n;
}

Network feed_forward(int64_t batch) {
  Network n;
  Builder& b = n.builder;
  const Value x = b.input("x", {batch, 70, 40});
  b.input("t", {batch, 48});
  const Value wide = b.geglu(b.linear(x, n.weight("w1", {320, 40}), n.weight("b1", {320})));
  b.output("y", b.add(x, b.linear(wide, n.weight("w2", {40, 160}), n.weight("b2", {40}))));
  return n;
}

/// The last `batch` of three samples.
std::vector<float> run(Network (*build)(int64_t), int64_t batch, int threads) {
  Network n = build(batch);
  ir::Graph graph = std::move(n.builder).finish();
  std::vector<std::vector<float>> data;
  std::vector<TensorView> inputs;
  for (const Value v : graph.inputs()) {
    const Shape& shape = graph[v].shape;
    const int64_t sample = shape.elements() / batch;
    const auto all = kernels::normal_floats(static_cast<size_t>(3 * sample), 100);
    data.emplace_back(all.end() - shape.elements(), all.end());
  }
  for (size_t i = 0; i < data.size(); ++i)
    inputs.push_back({data[i].data(), graph[graph.inputs()[i]].shape, DType::kF32});
  auto program = make_cpu_backend(threads)->compile(std::move(graph), n.weights, {Precision::kF32});
  EXPECT_TRUE(program) << program.error().message;
  auto outputs = (*program)->run(inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  const auto values = (*outputs)[0].f32();
  return {values.begin(), values.end()};
}

class Products : public kernels::EachIsa {};

TEST_P(Products, AgreeWithTheScalarLevel) {
  for (const auto build : {convolutions, feed_forward}) {
    const std::vector<float> here = run(build, 2, 2);
    set_active_isa(Isa::kScalar);
    EXPECT_LT(kernels::largest_difference(here, run(build, 2, 2)), 5e-5);
    set_active_isa(GetParam());
  }
}

TEST_P(Products, BitsDependOnNeitherBatchNorThreads) {
  for (const auto build : {convolutions, feed_forward}) {
    const std::vector<float> all = run(build, 3, 1), last = run(build, 1, 2);
    EXPECT_EQ(run(build, 3, 3), all);
    EXPECT_EQ(std::vector<float>(all.end() - static_cast<int64_t>(last.size()), all.end()), last);
  }
}

INSTANTIATE_EACH_ISA(Products);

Product convolution(int64_t size, int64_t channels, int64_t out_channels) {
  static const ir::Conv2d kConv;
  Product p;
  p.conv = &kConv;
  p.height = p.width = p.out_height = p.out_width = size;
  p.channels = channels, p.out_channels = out_channels;
  p.kernel_height = p.kernel_width = 3;
  return p;
}

TEST(ChooseKernel, ByShapePrecisionAndInstructionSet) {
  constexpr auto kF32 = Precision::kF32, kBF16 = Precision::kBF16;
  const Product usual = convolution(64, 320, 320), few_channels = convolution(64, 4, 320),
                few_tiles = convolution(8, 1280, 1280);
  EXPECT_EQ(choose_kernel(usual, kF32, Isa::kAvx2), ProductKernel::kWinograd);
  EXPECT_EQ(choose_kernel(usual, kF32, Isa::kAmx), ProductKernel::kWinograd);
  EXPECT_EQ(choose_kernel(usual, kF32, Isa::kScalar), ProductKernel::kOneDnn);
  EXPECT_EQ(choose_kernel(usual, kBF16, Isa::kAvx512Bf16), ProductKernel::kWinograd);
  EXPECT_EQ(choose_kernel(usual, kBF16, Isa::kAmx), ProductKernel::kOneDnn);
  EXPECT_EQ(choose_kernel(few_channels, kF32, Isa::kAvx512), ProductKernel::kOneDnn);
  EXPECT_EQ(choose_kernel(few_tiles, kF32, Isa::kAvx512), ProductKernel::kOneDnn);
}

}  // namespace
}  // namespace sfumato::cpu
