#include "passes/passes.h"

namespace sfumato::passes {
namespace {

using ir::Value;

constexpr size_t kRowBias = ir::ProductInput::kRowBias, kResidual = ir::ProductInput::kResidual;

ir::Epilogue* epilogue_of(ir::Node& node) {
  if (auto* conv = std::get_if<ir::Conv2d>(&node.op)) return &conv->epilogue;
  if (auto* linear = std::get_if<ir::Linear>(&node.op)) return &linear->epilogue;
  return nullptr;
}

class Fuser {
 public:
  explicit Fuser(ir::Graph& graph) : graph_(graph), uses_(graph.use_counts()) {}

  void run() {
    for (ir::Node& node : graph_.nodes) {
      if (const auto* unary = std::get_if<ir::Unary>(&node.op)) {
        const ir::UnaryKind kind = unary->kind;
        fuse_activation(node, [&](ir::Epilogue& e) { e.activation = kind; });
      } else if (std::holds_alternative<ir::Geglu>(node.op)) {
        if (std::holds_alternative<ir::Linear>(graph_[node.inputs[0]].op))
          fuse_activation(node, [](ir::Epilogue& e) { e.geglu = true; });
      } else if (const auto* binary = std::get_if<ir::Binary>(&node.op)) {
        if (binary->kind == ir::BinaryKind::kAdd) fuse_add(node);
      }
    }
  }

 private:
  // A product that only its reader needs, and that can still take on more. Null: not one.
  const ir::Node* producer(Value v) {
    ir::Node& node = graph_[v];
    const ir::Epilogue* epilogue = epilogue_of(node);
    const bool is_free = epilogue && !epilogue->geglu && !has_input(node, kResidual);
    return is_free && uses_[static_cast<size_t>(v.id)] == 1 ? &node : nullptr;
  }

  template <class Set>
  void fuse_activation(ir::Node& node, Set set) {
    const ir::Node* product = producer(node.inputs[0]);
    if (!product) return;
    ir::Node fused = *product;
    ir::Epilogue& epilogue = *epilogue_of(fused);
    if (epilogue.activation || epilogue.geglu) return;
    set(epilogue);
    fused.shape = node.shape;
    node = std::move(fused);
  }

  void fuse_add(ir::Node& node) {
    const Value a = node.inputs[0], b = node.inputs[1];
    if (graph_[b].shape != node.shape) {
      fuse_row_bias(node, a, b);
    } else if (const ir::Node* product = producer(b)) {  // x + f(x), the residual idiom
      fuse_residual(node, *product, a);
    } else if (const ir::Node* other = producer(a)) {
      fuse_residual(node, *other, b);
    }
  }

  void fuse_residual(ir::Node& node, const ir::Node& product, Value residual) {
    ir::Node fused = product;
    fused.inputs.resize(kResidual + 1);
    fused.inputs[kResidual] = residual;
    node = std::move(fused);
  }

  // b is a reshape [B,C] -> [B,1,1,C] of a per-sample vector.
  void fuse_row_bias(ir::Node& node, Value a, Value b) {
    const ir::Node* product = producer(a);
    const ir::Node& reshape = graph_[b];
    if (!product || !std::holds_alternative<ir::Conv2d>(product->op) || has_input(*product, kRowBias)) return;
    if (!std::holds_alternative<ir::Reshape>(reshape.op)) return;
    const Value vector = reshape.inputs[0];
    if (graph_[vector].shape != Shape{node.shape[0], node.shape[-1]}) return;
    ir::Node fused = *product;
    if (epilogue_of(fused)->activation) return;
    fused.inputs.resize(kRowBias + 1);
    fused.inputs[kRowBias] = vector;
    node = std::move(fused);
  }

  ir::Graph& graph_;
  std::vector<int> uses_;
};

}  // namespace

void fuse_epilogues(ir::Graph& graph) {
  Fuser(graph).run();
}

}  // namespace sfumato::passes
