#include "nn/transformer.h"

#include <cmath>

namespace sfumato::nn {

Attention Attention::from(WeightView w, int64_t channels, int64_t context_channels, int heads) {
  return {Linear::from(w / "to_q", channels, channels, false),
          Linear::from(w / "to_k", context_channels, channels, false),
          Linear::from(w / "to_v", context_channels, channels, false),
          Linear::from(w / "to_out" / 0, channels, channels), heads};
}
Value Attention::forward(Builder& b, Value x, Value context) const {
  const Value q = to_q.forward(b, x), k = to_k.forward(b, context), v = to_v.forward(b, context);
  const auto head_size = static_cast<float>(b.shape(q)[2] / heads);
  return to_out.forward(b, b.attention(q, k, v, {.heads = heads, .scale = 1 / std::sqrt(head_size)}));
}

FeedForward FeedForward::from(WeightView w, int64_t channels) {
  return {Linear::from(w / "net" / 0 / "proj", channels, 8 * channels),
          Linear::from(w / "net" / 2, 4 * channels, channels)};
}
Value FeedForward::forward(Builder& b, Value x) const {
  return out.forward(b, b.geglu(proj.forward(b, x)));
}

BasicTransformerBlock BasicTransformerBlock::from(WeightView w, int64_t channels, int64_t context_channels, int heads,
                                                  bool only_cross_attention) {
  return {LayerNorm::from(w / "norm1", channels),
          LayerNorm::from(w / "norm2", channels),
          LayerNorm::from(w / "norm3", channels),
          Attention::from(w / "attn1", channels, only_cross_attention ? context_channels : channels, heads),
          Attention::from(w / "attn2", channels, context_channels, heads),
          FeedForward::from(w / "ff", channels),
          only_cross_attention};
}
Value BasicTransformerBlock::forward(Builder& b, Value x, Value context) const {
  const Value normal = norm1.forward(b, x);
  x = b.add(x, attn1.forward(b, normal, only_cross_attention ? context : normal));
  x = b.add(x, attn2.forward(b, norm2.forward(b, x), context));
  return b.add(x, ff.forward(b, norm3.forward(b, x)));
}

Transformer2D Transformer2D::from(WeightView w, int64_t channels, int64_t context_channels, int heads, int depth,
                                  int groups, bool only_cross_attention) {
  Transformer2D t{GroupNorm::from(w / "norm", channels, groups, 1e-6f),
                  Linear::from(w / "proj_in", channels, channels),
                  Linear::from(w / "proj_out", channels, channels),
                  {}};
  for (int i = 0; i < depth; ++i)
    t.transformer_blocks.push_back(BasicTransformerBlock::from(w / "transformer_blocks" / i, channels, context_channels,
                                                               heads, only_cross_attention));
  return t;
}
Value Transformer2D::forward(Builder& b, Value x, Value context) const {
  const Shape image = b.shape(x), tokens{image[0], image[1] * image[2], image[3]};
  Value h = proj_in.forward(b, b.reshape(norm.forward(b, x), tokens));
  for (const BasicTransformerBlock& block : transformer_blocks) h = block.forward(b, h, context);
  return b.reshape(b.add(b.reshape(x, tokens), proj_out.forward(b, h)), image);
}

}  // namespace sfumato::nn
