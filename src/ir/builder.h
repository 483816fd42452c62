#pragma once
// Appends nodes to a graph; each function checks shapes (a wrong one is a bug: CHECK) and returns the new value.
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/graph.h"

namespace sfumato::ir {

class Builder {
 public:
  explicit Builder(std::string name) { graph_.name = std::move(name); }

  Value input(std::string name, Shape shape, DType dtype = DType::kF32);
  Value weight(std::string name, Shape shape, DType dtype);  ///< the same name twice is the same value

  Value conv2d(Value x, Value weight, Value bias, Conv2d attributes);
  Value linear(Value x, Value weight, Value bias);
  Value attention(Value q, Value k, Value v, Attention attributes);
  Value group_norm(Value x, Value gamma, Value beta, GroupNorm attributes);
  Value layer_norm(Value x, Value gamma, Value beta, float eps);
  Value unary(UnaryKind kind, Value x);
  Value silu(Value x) { return unary(UnaryKind::kSilu, x); }
  Value add(Value a, Value b);
  Value mul(Value a, Value b);
  Value scale(Value x, float factor);
  Value geglu(Value x);
  Value upsample_nearest(Value x, int64_t height, int64_t width);
  Value concat(std::vector<Value> parts);  ///< along channels
  Value slice(Value x, int axis, int64_t begin, int64_t end);
  Value reshape(Value x, Shape shape);
  Value embedding(Value ids, Value table);
  Value gather_row(Value x, Value index);
  Value timestep_embedding(Value t, TimestepEmbedding attributes);

  void output(std::string name, Value value) { graph_.outputs.push_back({std::move(name), value}); }
  const Shape& shape(Value v) const { return graph_[v].shape; }
  const Graph& graph() const { return graph_; }
  Graph finish() &&;  ///< verified

 private:
  Value append(Op op, std::vector<Value> inputs);
  Graph graph_;
  std::unordered_map<std::string, int> weights_;
};

}  // namespace sfumato::ir
