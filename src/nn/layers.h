#pragma once
// Layers: structs whose fields carry the checkpoint's names. `from` takes the weights it needs from a view (faults are
// noted in the view's ledger), `forward` appends nodes to a graph. Images are [B,H,W,C], tokens [B,T,C].
#include <optional>
#include <string>

#include "ir/builder.h"
#include "weights/weight_source.h"

namespace sfumato::nn {

using ir::Builder;
using ir::Value;

/// The graph's value for a parameter of the checkpoint.
Value value_of(Builder& b, const Param& param);

struct Linear {  // [...,in] -> [...,out]
  Param weight;
  std::optional<Param> bias;
  static Linear from(WeightView w, int64_t in, int64_t out, bool has_bias = true);
  Value forward(Builder& b, Value x) const;
};

struct Conv2d {  // [B,H,W,in] -> [B,H',W',out]
  Param weight, bias;
  int64_t kernel = 3;
  static Conv2d from(WeightView w, int64_t in, int64_t out, int64_t kernel = 3);
  /// Padding (kernel - 1) / 2 on all sides.
  Value forward(Builder& b, Value x, int stride = 1) const;
  Value forward(Builder& b, Value x, ir::Conv2d attributes) const;
};

struct GroupNorm {
  Param weight, bias;
  ir::GroupNorm attributes;
  static GroupNorm from(WeightView w, int64_t channels, int groups, float eps);
  Value forward(Builder& b, Value x) const;
};

struct LayerNorm {
  Param weight, bias;
  float eps = 1e-5f;
  static LayerNorm from(WeightView w, int64_t channels, float eps = 1e-5f);
  Value forward(Builder& b, Value x) const;
};

/// Two linear layers with SiLU between: how the U-Net embeds time and SDXL's sizes.
struct TimestepEmbedding {
  Linear linear_1, linear_2;
  static TimestepEmbedding from(WeightView w, int64_t in, int64_t out);
  Value forward(Builder& b, Value x) const;
};

struct ResnetBlock {  // [B,H,W,in], temb [B,T] -> [B,H,W,out]
  GroupNorm norm1, norm2;
  Conv2d conv1, conv2;
  std::optional<Linear> time_emb_proj;
  std::optional<Conv2d> conv_shortcut;
  /// temb_channels 0: no time embedding (the autoencoder).
  static ResnetBlock from(WeightView w, int64_t in, int64_t out, int64_t temb_channels, int groups, float eps);
  Value forward(Builder& b, Value x, Value temb = {}) const;
};

/// The activation named in a config ("silu", "gelu", "quick_gelu", ...), or nothing.
std::optional<ir::UnaryKind> activation_of(const std::string& name);

}  // namespace sfumato::nn
