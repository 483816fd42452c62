#include "ir/cost.h"

namespace sfumato::ir {
namespace {

int64_t of_node(const Graph& graph, const Node& node) {
  const auto shape = [&](size_t input) -> const Shape& { return graph[node.inputs[input]].shape; };
  if (std::holds_alternative<Conv2d>(node.op)) {
    const Shape& weight = shape(ProductInput::kWeight);
    return node.shape.elements() * (weight.elements() / weight[0]);
  }
  if (std::holds_alternative<Linear>(node.op)) {
    const Shape& x = shape(ProductInput::kX);
    const Shape& weight = shape(ProductInput::kWeight);
    return x.elements() / x[x.rank() - 1] * weight.elements();
  }
  if (std::holds_alternative<Attention>(node.op))  // q k^T, and its product with v
    return 2 * node.shape.elements() * shape(1)[1];
  return 0;
}

}  // namespace

int64_t multiply_adds(const Graph& graph) {
  int64_t total = 0;
  for (const Node& node : graph.nodes) total += of_node(graph, node);
  return total;
}

}  // namespace sfumato::ir
