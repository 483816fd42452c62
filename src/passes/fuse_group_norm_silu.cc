#include "passes/passes.h"

namespace sfumato::passes {

void fuse_group_norm_silu(ir::Graph& graph) {
  const std::vector<int> uses = graph.use_counts();
  for (ir::Node& node : graph.nodes) {
    const auto* unary = std::get_if<ir::Unary>(&node.op);
    if (!unary || unary->kind != ir::UnaryKind::kSilu) continue;
    const ir::Value x = node.inputs[0];
    const auto* norm = std::get_if<ir::GroupNorm>(&graph[x].op);
    if (!norm || norm->silu || uses[static_cast<size_t>(x.id)] != 1) continue;
    ir::GroupNorm fused = *norm;
    fused.silu = true;
    node.inputs = graph[x].inputs;
    node.op = fused;
  }
}

}  // namespace sfumato::passes
