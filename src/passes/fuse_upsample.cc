#include "passes/passes.h"

namespace sfumato::passes {

void fuse_upsample(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    auto* conv = std::get_if<ir::Conv2d>(&node.op);
    if (!conv || conv->upsample2x) continue;
    const ir::Node& up = graph[node.inputs[0]];
    if (!std::holds_alternative<ir::UpsampleNearest>(up.op)) continue;
    const Shape& small = graph[up.inputs[0]].shape;
    if (up.shape[1] != 2 * small[1] || up.shape[2] != 2 * small[2]) continue;
    conv->upsample2x = true;
    node.inputs[0] = up.inputs[0];
  }
}

}  // namespace sfumato::passes
