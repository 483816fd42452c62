#include "passes/passes.h"

namespace sfumato::passes {

void remove_unused(ir::Graph& graph) {
  std::vector<bool> needed(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) needed[static_cast<size_t>(output.value.id)] = true;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    if (std::holds_alternative<ir::Input>(graph.nodes[id].op)) needed[id] = true;
    if (!needed[id]) continue;
    for (const ir::Value v : graph.nodes[id].inputs)
      if (v) needed[static_cast<size_t>(v.id)] = true;
  }
  std::vector<int> new_id(graph.nodes.size(), -1);
  std::vector<ir::Node> kept;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (!needed[id]) continue;
    new_id[id] = static_cast<int>(kept.size());
    kept.push_back(std::move(graph.nodes[id]));
    for (ir::Value& v : kept.back().inputs)
      if (v) v.id = new_id[static_cast<size_t>(v.id)];
  }
  for (ir::Output& output : graph.outputs) output.value.id = new_id[static_cast<size_t>(output.value.id)];
  graph.nodes = std::move(kept);
}

}  // namespace sfumato::passes
