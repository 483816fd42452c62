#include "ir/graph.h"

#include <sstream>

#include "base/strings.h"

namespace sfumato::ir {
namespace {

constexpr std::string_view kUnaryNames[] = {"silu", "gelu", "gelu_tanh", "quick_gelu", "relu", "tanh"};
constexpr std::string_view kBinaryNames[] = {"add", "mul"};

std::string epilogue_text(const Epilogue& e) {
  return str(e.activation ? str(kUnaryNames[static_cast<int>(*e.activation)]) : "", e.geglu ? "geglu" : "");
}

struct Attributes {
  std::string operator()(const Input& op) const { return op.name; }
  std::string operator()(const Weight& op) const { return op.name; }
  std::string operator()(const Conv2d& op) const {
    const std::string epilogue = epilogue_text(op.epilogue);
    return str("stride=", op.stride, ", pad=", op.pad_top, ",", op.pad_left, ",", op.pad_bottom, ",", op.pad_right,
               op.upsample2x ? ", upsample2x" : "", epilogue.empty() ? "" : ", ", epilogue);
  }
  std::string operator()(const Linear& op) const { return epilogue_text(op.epilogue); }
  std::string operator()(const Attention& op) const {
    return str("heads=", op.heads, ", scale=", op.scale, op.causal ? ", causal" : "");
  }
  std::string operator()(const GroupNorm& op) const {
    return str("groups=", op.groups, ", eps=", op.eps, op.silu ? ", silu" : "");
  }
  std::string operator()(const LayerNorm& op) const { return str("eps=", op.eps); }
  std::string operator()(const Unary& op) const { return std::string(kUnaryNames[static_cast<int>(op.kind)]); }
  std::string operator()(const Binary& op) const { return std::string(kBinaryNames[static_cast<int>(op.kind)]); }
  std::string operator()(const Scale& op) const { return str("factor=", op.factor); }
  std::string operator()(const UpsampleNearest& op) const { return str(op.height, "x", op.width); }
  std::string operator()(const Slice& op) const { return str("axis=", op.axis, ", ", op.begin, ":", op.end); }
  std::string operator()(const Reshape& op) const { return op.shape.to_string(); }
  std::string operator()(const TimestepEmbedding& op) const {
    return str("dim=", op.dim, op.flip_sin_to_cos ? ", cos first" : ", sin first", ", shift=", op.shift);
  }
  template <class NoAttributes>
  std::string operator()(const NoAttributes&) const {
    return "";
  }
};

}  // namespace

bool is_leaf(const Node& node) {
  return std::holds_alternative<Input>(node.op) || std::holds_alternative<Weight>(node.op);
}

std::vector<Value> Graph::inputs() const {
  std::vector<Value> found;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (std::holds_alternative<Input>(nodes[i].op)) found.push_back({static_cast<int>(i)});
  return found;
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> counts(nodes.size());
  for (const Node& node : nodes)
    for (const Value v : node.inputs)
      if (v) ++counts[static_cast<size_t>(v.id)];
  for (const Output& output : outputs) ++counts[static_cast<size_t>(output.value.id)];
  return counts;
}

Result<void> verify(const Graph& graph) {
  const auto fault = [&](size_t id, const std::string& what) {
    return runtime_error(str("[ir.verify] graph ", graph.name, ", %", id, ": ", what));
  };
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    for (const Value v : node.inputs)
      if (v.id >= static_cast<int>(id)) return fault(id, str("uses %", v.id, ", which comes later"));
    if (is_leaf(node)) {
      if (!node.inputs.empty()) return fault(id, "a leaf has inputs");
      continue;
    }
    const Result<Inferred> inferred = infer(graph, node.op, node.inputs);
    if (!inferred) return fault(id, inferred.error().message);
    if (inferred->shape != node.shape || inferred->dtype != node.dtype)
      return fault(id, str("says ", node.shape.to_string(), ", its inputs give ", inferred->shape.to_string()));
  }
  for (const Output& output : graph.outputs)
    if (output.value.id < 0 || output.value.id >= static_cast<int>(graph.nodes.size()))
      return runtime_error(str("[ir.verify] graph ", graph.name, ": output ", output.name, " is no value"));
  return {};
}

std::string to_text(const Graph& graph) {
  std::ostringstream out;
  out << "graph " << graph.name << "\n";
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    std::vector<std::string> inputs;
    for (const Value v : node.inputs) inputs.push_back(v ? str("%", v.id) : "none");
    const std::string attributes = std::visit(Attributes{}, node.op);
    out << "%" << id << " = " << op_name(node.op) << "(" << join(inputs, ", ") << ")"
        << (attributes.empty() ? "" : " {" + attributes + "}") << " : " << dtype_name(node.dtype) << " "
        << node.shape.to_string() << "\n";
  }
  for (const Output& output : graph.outputs) out << "output " << output.name << " = %" << output.value.id << "\n";
  return std::move(out).str();
}

}  // namespace sfumato::ir
