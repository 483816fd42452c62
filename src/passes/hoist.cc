#include "passes/hoist.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"
#include "passes/passes.h"

namespace sfumato::passes {
namespace {

/// By node: is it computed from `slow_inputs` and weights alone, and from one input at least?
std::vector<bool> computed_from(const ir::Graph& graph, const std::vector<std::string>& slow_inputs) {
  std::vector<bool> slow(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph.nodes[id];
    if (const auto* input = std::get_if<ir::Input>(&node.op)) {
      slow[id] = std::ranges::count(slow_inputs, input->name) > 0;
      continue;
    }
    int slow_ones = 0, others = 0;
    for (const ir::Value v : node.inputs)
      if (v && !std::holds_alternative<ir::Weight>(graph[v].op))
        ++(slow[static_cast<size_t>(v.id)] ? slow_ones : others);
    slow[id] = slow_ones > 0 && others == 0;
  }
  return slow;
}

}  // namespace

Hoisted hoist(ir::Graph graph, const std::vector<std::string>& slow_inputs) {
  const std::vector<bool> slow = computed_from(graph, slow_inputs);
  const auto is_slow = [&](ir::Value v) {
    return slow[static_cast<size_t>(v.id)] && !std::holds_alternative<ir::Input>(graph[v].op);
  };
  std::vector<ir::Value> border;
  const auto cross = [&](ir::Value v) {
    if (v && is_slow(v) && std::ranges::count(border, v) == 0) border.push_back(v);
  };
  for (size_t id = 0; id < graph.nodes.size(); ++id)
    if (!slow[id]) std::ranges::for_each(graph.nodes[id].inputs, cross);
  for (const ir::Output& output : graph.outputs) cross(output.value);
  std::ranges::sort(border, {}, &ir::Value::id);

  Hoisted out;
  if (!border.empty()) {
    out.once = graph;
    out.once.name += ".once";
    out.once.outputs.clear();
    const size_t inputs = graph.inputs().size();
    for (const ir::Value v : border) {
      const std::string name = str("hoisted.", out.once.outputs.size());
      out.once.outputs.push_back({name, v, /*hoisted=*/true});
      graph[v] = {ir::Input{name, /*hoisted=*/true}, {}, graph[v].shape, graph[v].dtype};
    }
    remove_unused(out.once);
    remove_unused(graph);
    const std::vector<ir::Value> all = graph.inputs();
    for (size_t i = inputs; i < all.size(); ++i)
      CHECK(std::get<ir::Input>(graph[all[i]].op).name == out.once.outputs[i - inputs].name, "inputs come first");
  }
  out.rest = std::move(graph);
  return out;
}

}  // namespace sfumato::passes
