#include "nn/layers.h"

namespace sfumato::nn {

Value value_of(Builder& b, const Param& param) {
  return b.weight(param.name, param.shape, param.dtype);
}

Linear Linear::from(WeightView w, int64_t in, int64_t out, bool has_bias) {
  Linear layer{w.require("weight", {out, in}), std::nullopt};
  if (has_bias) layer.bias = w.require("bias", {out});
  return layer;
}
Value Linear::forward(Builder& b, Value x) const {
  return b.linear(x, value_of(b, weight), bias ? value_of(b, *bias) : Value{});
}

Conv2d Conv2d::from(WeightView w, int64_t in, int64_t out, int64_t kernel) {
  return {w.require("weight", {out, in, kernel, kernel}), w.require("bias", {out}), kernel};
}
Value Conv2d::forward(Builder& b, Value x, int stride) const {
  const int pad = static_cast<int>(kernel - 1) / 2;
  return forward(b, x, {.stride = stride, .pad_top = pad, .pad_left = pad, .pad_bottom = pad, .pad_right = pad});
}
Value Conv2d::forward(Builder& b, Value x, ir::Conv2d attributes) const {
  return b.conv2d(x, value_of(b, weight), value_of(b, bias), attributes);
}

GroupNorm GroupNorm::from(WeightView w, int64_t channels, int groups, float eps) {
  return {w.require("weight", {channels}), w.require("bias", {channels}), {.groups = groups, .eps = eps}};
}
Value GroupNorm::forward(Builder& b, Value x) const {
  return b.group_norm(x, value_of(b, weight), value_of(b, bias), attributes);
}

LayerNorm LayerNorm::from(WeightView w, int64_t channels, float eps) {
  return {w.require("weight", {channels}), w.require("bias", {channels}), eps};
}
Value LayerNorm::forward(Builder& b, Value x) const {
  return b.layer_norm(x, value_of(b, weight), value_of(b, bias), eps);
}

TimestepEmbedding TimestepEmbedding::from(WeightView w, int64_t in, int64_t out) {
  return {Linear::from(w / "linear_1", in, out), Linear::from(w / "linear_2", out, out)};
}
Value TimestepEmbedding::forward(Builder& b, Value x) const {
  return linear_2.forward(b, b.silu(linear_1.forward(b, x)));
}

ResnetBlock ResnetBlock::from(WeightView w, int64_t in, int64_t out, int64_t temb_channels, int groups, float eps) {
  ResnetBlock block{GroupNorm::from(w / "norm1", in, groups, eps),
                    GroupNorm::from(w / "norm2", out, groups, eps),
                    Conv2d::from(w / "conv1", in, out),
                    Conv2d::from(w / "conv2", out, out),
                    std::nullopt,
                    std::nullopt};
  if (temb_channels > 0) block.time_emb_proj = Linear::from(w / "time_emb_proj", temb_channels, out);
  if (in != out) block.conv_shortcut = Conv2d::from(w / "conv_shortcut", in, out, 1);
  return block;
}
Value ResnetBlock::forward(Builder& b, Value x, Value temb) const {
  Value h = conv1.forward(b, b.silu(norm1.forward(b, x)));
  if (time_emb_proj) {
    const Value t = time_emb_proj->forward(b, b.silu(temb));
    h = b.add(h, b.reshape(t, {b.shape(t)[0], 1, 1, b.shape(t)[1]}));
  }
  h = conv2.forward(b, b.silu(norm2.forward(b, h)));
  return b.add(conv_shortcut ? conv_shortcut->forward(b, x) : x, h);
}

std::optional<ir::UnaryKind> activation_of(const std::string& name) {
  if (name == "silu" || name == "swish") return ir::UnaryKind::kSilu;
  if (name == "gelu") return ir::UnaryKind::kGelu;
  if (name == "quick_gelu") return ir::UnaryKind::kQuickGelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return ir::UnaryKind::kGeluTanh;
  if (name == "relu") return ir::UnaryKind::kRelu;
  return std::nullopt;
}

}  // namespace sfumato::nn
