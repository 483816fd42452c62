#pragma once
// The transformer inside the U-Net: self-attention, attention to the prompt, GEGLU feed-forward.
#include <vector>

#include "nn/layers.h"

namespace sfumato::nn {

struct Attention {  // x [B,T,C], context [B,S,X] -> [B,T,C]
  Linear to_q, to_k, to_v, to_out;
  int heads = 1;
  static Attention from(WeightView w, int64_t channels, int64_t context_channels, int heads);
  Value forward(Builder& b, Value x, Value context) const;
};

struct FeedForward {
  Linear proj, out;  // net.0.proj, net.2
  static FeedForward from(WeightView w, int64_t channels);
  Value forward(Builder& b, Value x) const;
};

struct BasicTransformerBlock {
  LayerNorm norm1, norm2, norm3;
  Attention attn1, attn2;
  FeedForward ff;
  bool only_cross_attention = false;  ///< attn1 attends to the prompt as well
  static BasicTransformerBlock from(WeightView w, int64_t channels, int64_t context_channels, int heads,
                                    bool only_cross_attention);
  Value forward(Builder& b, Value x, Value context) const;
};

struct Transformer2D {  // [B,H,W,C] -> [B,H,W,C]
  GroupNorm norm;
  Linear proj_in, proj_out;  ///< 1x1 convolutions or linear layers: the same thing, channels last
  std::vector<BasicTransformerBlock> transformer_blocks;
  static Transformer2D from(WeightView w, int64_t channels, int64_t context_channels, int heads, int depth, int groups,
                            bool only_cross_attention);
  Value forward(Builder& b, Value x, Value context) const;
};

}  // namespace sfumato::nn
