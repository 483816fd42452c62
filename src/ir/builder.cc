#include "ir/builder.h"

#include "base/check.h"

namespace sfumato::ir {

Value Builder::append(Op op, std::vector<Value> inputs) {
  Result<Inferred> inferred = infer(graph_, op, inputs);
  if (!inferred) CHECK(false, inferred.error().message);
  graph_.nodes.push_back({std::move(op), std::move(inputs), std::move(inferred->shape), inferred->dtype});
  return {static_cast<int>(graph_.nodes.size()) - 1};
}

Value Builder::input(std::string name, Shape shape, DType dtype) {
  graph_.nodes.push_back({Input{std::move(name)}, {}, std::move(shape), dtype});
  return {static_cast<int>(graph_.nodes.size()) - 1};
}

Value Builder::weight(std::string name, Shape shape, DType dtype) {
  const auto [known, is_new] = weights_.try_emplace(name, static_cast<int>(graph_.nodes.size()));
  if (is_new) graph_.nodes.push_back({Weight{std::move(name)}, {}, std::move(shape), dtype});
  return {known->second};
}

Value Builder::conv2d(Value x, Value weight, Value bias, Conv2d attributes) {
  return append(attributes, {x, weight, bias});
}
Value Builder::linear(Value x, Value weight, Value bias) {
  return append(Linear{}, {x, weight, bias});
}
Value Builder::attention(Value q, Value k, Value v, Attention attributes) {
  return append(attributes, {q, k, v});
}
Value Builder::group_norm(Value x, Value gamma, Value beta, GroupNorm attributes) {
  return append(attributes, {x, gamma, beta});
}
Value Builder::layer_norm(Value x, Value gamma, Value beta, float eps) {
  return append(LayerNorm{eps}, {x, gamma, beta});
}
Value Builder::unary(UnaryKind kind, Value x) {
  return append(Unary{kind}, {x});
}
Value Builder::add(Value a, Value b) {
  return append(Binary{BinaryKind::kAdd}, {a, b});
}
Value Builder::mul(Value a, Value b) {
  return append(Binary{BinaryKind::kMul}, {a, b});
}
Value Builder::scale(Value x, float factor) {
  return append(Scale{factor}, {x});
}
Value Builder::geglu(Value x) {
  return append(Geglu{}, {x});
}
Value Builder::upsample_nearest(Value x, int64_t height, int64_t width) {
  return append(UpsampleNearest{height, width}, {x});
}
Value Builder::concat(std::vector<Value> parts) {
  return append(Concat{}, std::move(parts));
}
Value Builder::slice(Value x, int axis, int64_t begin, int64_t end) {
  return append(Slice{axis, begin, end}, {x});
}
Value Builder::reshape(Value x, Shape shape) {
  return append(Reshape{std::move(shape)}, {x});
}
Value Builder::embedding(Value ids, Value table) {
  return append(Embedding{}, {ids, table});
}
Value Builder::gather_row(Value x, Value index) {
  return append(GatherRow{}, {x, index});
}
Value Builder::timestep_embedding(Value t, TimestepEmbedding attributes) {
  return append(attributes, {t});
}

Graph Builder::finish() && {
  const Result<void> ok = verify(graph_);
  if (!ok) CHECK(false, ok.error().message);
  return std::move(graph_);
}

}  // namespace sfumato::ir
