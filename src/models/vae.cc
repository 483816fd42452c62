#include "models/vae.h"

#include <cmath>

#include "base/strings.h"
#include "models/config.h"
#include "nn/layers.h"

namespace sfumato::models {
namespace {

using nn::Builder;
using nn::Value;

constexpr float kEps = 1e-6f;

/// Self-attention over all pixels, one head.
struct MidAttention {
  nn::GroupNorm group_norm;
  nn::Linear to_q, to_k, to_v, to_out;

  static MidAttention from(WeightView w, int64_t channels, int groups) {
    const bool old_names = w.has("query.weight");
    const auto linear = [&](const char* name, const char* old_name) {
      return nn::Linear::from(w / (old_names ? old_name : name), channels, channels);
    };
    return {nn::GroupNorm::from(w / "group_norm", channels, groups, kEps), linear("to_q", "query"),
            linear("to_k", "key"), linear("to_v", "value"), linear("to_out.0", "proj_attn")};
  }
  Value forward(Builder& b, Value x) const {
    const Shape image = b.shape(x), tokens{image[0], image[1] * image[2], image[3]};
    const Value h = b.reshape(group_norm.forward(b, x), tokens);
    const float scale = 1 / std::sqrt(static_cast<float>(image[3]));
    const Value mixed =
        b.attention(to_q.forward(b, h), to_k.forward(b, h), to_v.forward(b, h), {.heads = 1, .scale = scale});
    return b.reshape(b.add(b.reshape(x, tokens), to_out.forward(b, mixed)), image);
  }
};

struct MidBlock {
  nn::ResnetBlock first, second;
  std::optional<MidAttention> attention;

  static MidBlock from(WeightView w, int64_t channels, const VaeConfig& c) {
    const int groups = static_cast<int>(c.norm_num_groups);
    MidBlock block{nn::ResnetBlock::from(w / "resnets" / 0, channels, channels, 0, groups, kEps),
                   nn::ResnetBlock::from(w / "resnets" / 1, channels, channels, 0, groups, kEps), std::nullopt};
    if (c.mid_block_add_attention) block.attention = MidAttention::from(w / "attentions" / 0, channels, groups);
    return block;
  }
  Value forward(Builder& b, Value x) const {
    x = first.forward(b, x);
    if (attention) x = attention->forward(b, x);
    return second.forward(b, x);
  }
};

struct SizeBlock {  // residual blocks, then perhaps a change of size
  std::vector<nn::ResnetBlock> resnets;
  std::optional<nn::Conv2d> resample;

  static SizeBlock from(WeightView w, int64_t in, int64_t out, int64_t layers, const char* resample, int groups) {
    SizeBlock block;
    for (int i = 0; i < layers; ++i)
      block.resnets.push_back(nn::ResnetBlock::from(w / "resnets" / i, i == 0 ? in : out, out, 0, groups, kEps));
    if (resample) block.resample = nn::Conv2d::from(w / resample / 0 / "conv", out, out);
    return block;
  }
};

struct Encoder {
  nn::Conv2d conv_in, conv_out;
  std::vector<SizeBlock> down_blocks;
  MidBlock mid_block;
  nn::GroupNorm conv_norm_out;

  static Encoder from(WeightView w, const VaeConfig& c) {
    const int groups = static_cast<int>(c.norm_num_groups);
    const auto& widths = c.block_out_channels;
    Encoder e{nn::Conv2d::from(w / "conv_in", 3, widths[0]),
              nn::Conv2d::from(w / "conv_out", widths.back(), 2 * c.latent_channels),
              {},
              MidBlock::from(w / "mid_block", widths.back(), c),
              nn::GroupNorm::from(w / "conv_norm_out", widths.back(), groups, kEps)};
    for (size_t i = 0; i < widths.size(); ++i)
      e.down_blocks.push_back(SizeBlock::from(w / "down_blocks" / static_cast<int>(i), widths[i == 0 ? 0 : i - 1],
                                              widths[i], c.layers_per_block,
                                              i + 1 < widths.size() ? "downsamplers" : nullptr, groups));
    return e;
  }
  Value forward(Builder& b, Value x) const {
    x = conv_in.forward(b, x);
    for (const SizeBlock& block : down_blocks) {
      for (const nn::ResnetBlock& resnet : block.resnets) x = resnet.forward(b, x);
      // One row and column of zeros at the far sides only, as the first autoencoders were trained.
      if (block.resample) x = block.resample->forward(b, x, {.stride = 2, .pad_bottom = 1, .pad_right = 1});
    }
    x = mid_block.forward(b, x);
    return conv_out.forward(b, b.silu(conv_norm_out.forward(b, x)));
  }
};

struct Decoder {
  nn::Conv2d conv_in, conv_out;
  MidBlock mid_block;
  std::vector<SizeBlock> up_blocks;
  nn::GroupNorm conv_norm_out;

  static Decoder from(WeightView w, const VaeConfig& c) {
    const int groups = static_cast<int>(c.norm_num_groups);
    const std::vector<int64_t> widths(c.block_out_channels.rbegin(), c.block_out_channels.rend());
    Decoder d{nn::Conv2d::from(w / "conv_in", c.latent_channels, widths[0]),
              nn::Conv2d::from(w / "conv_out", widths.back(), 3),
              MidBlock::from(w / "mid_block", widths[0], c),
              {},
              nn::GroupNorm::from(w / "conv_norm_out", widths.back(), groups, kEps)};
    for (size_t i = 0; i < widths.size(); ++i)
      d.up_blocks.push_back(SizeBlock::from(w / "up_blocks" / static_cast<int>(i), widths[i == 0 ? 0 : i - 1],
                                            widths[i], c.layers_per_block + 1,
                                            i + 1 < widths.size() ? "upsamplers" : nullptr, groups));
    return d;
  }
  Value forward(Builder& b, Value x) const {
    x = mid_block.forward(b, conv_in.forward(b, x));
    for (const SizeBlock& block : up_blocks) {
      for (const nn::ResnetBlock& resnet : block.resnets) x = resnet.forward(b, x);
      if (!block.resample) continue;
      const Shape& s = b.shape(x);
      x = block.resample->forward(b, b.upsample_nearest(x, 2 * s[1], 2 * s[2]));
    }
    return conv_out.forward(b, b.silu(conv_norm_out.forward(b, x)));
  }
};

/// Both halves: their tensors share one file, so what is left over can only be told from both.
struct Vae {
  Encoder encoder;
  Decoder decoder;
  std::optional<nn::Conv2d> quant_conv, post_quant_conv;

  static Result<Vae> from(const VaeConfig& c, const WeightSource& weights) {
    WeightLedger ledger(weights);
    const WeightView w(ledger);
    Vae vae{Encoder::from(w / "encoder", c), Decoder::from(w / "decoder", c), std::nullopt, std::nullopt};
    const int64_t latent = c.latent_channels;
    if (c.use_quant_conv) vae.quant_conv = nn::Conv2d::from(w / "quant_conv", 2 * latent, 2 * latent, 1);
    if (c.use_post_quant_conv) vae.post_quant_conv = nn::Conv2d::from(w / "post_quant_conv", latent, latent, 1);
    TRY(ledger.finish("vae"));
    return vae;
  }
};

}  // namespace

Result<VaeConfig> parse_vae_config(const std::string& json) {
  ConfigReader c = TRY(ConfigReader::parse("vae", json));
  VaeConfig out;
  out.block_out_channels = c.integers("block_out_channels", {64});
  out.layers_per_block = c.integer("layers_per_block", 1, 1, 16);
  out.latent_channels = static_cast<int>(c.integer("latent_channels", 4, 1, 64));
  out.norm_num_groups = c.integer("norm_num_groups", 32);
  out.mid_block_add_attention = c.boolean("mid_block_add_attention", true);
  out.use_quant_conv = c.boolean("use_quant_conv", true);
  out.use_post_quant_conv = c.boolean("use_post_quant_conv", true);
  out.scaling_factor = static_cast<float>(c.number("scaling_factor", 0.18215));
  if (!(out.scaling_factor > 0) || !std::isfinite(out.scaling_factor))
    c.fault("scaling_factor expected to be positive");
  for (const std::string& type : c.texts("down_block_types", {}))
    if (type != "DownEncoderBlock2D") c.fault(str("down_block_types has \"", type, "\", which is not supported"));
  for (const std::string& type : c.texts("up_block_types", {}))
    if (type != "UpDecoderBlock2D") c.fault(str("up_block_types has \"", type, "\", which is not supported"));
  c.refuse("in_channels", 3);
  c.refuse("out_channels", 3);
  c.refuse("act_fn", "silu");
  for (const char* key : {"shift_factor", "latents_mean", "latents_std"}) c.refuse(key);
  for (const int64_t channels : out.block_out_channels)
    if (channels % out.norm_num_groups != 0)
      c.fault(
          str("block_out_channels ", channels, " expected to be a multiple of norm_num_groups ", out.norm_num_groups));
  TRY(c.finish());
  return out;
}

Result<ir::Graph> build_vae_decoder(const VaeConfig& config, const WeightSource& weights, int batch, int height,
                                    int width) {
  const Vae vae = TRY(Vae::from(config, weights));
  Builder b("vae_decoder");
  Value x = b.input("latent", {batch, height, width, config.latent_channels});
  if (vae.post_quant_conv) x = vae.post_quant_conv->forward(b, x);
  b.output("image", vae.decoder.forward(b, x));
  return std::move(b).finish();
}

Result<ir::Graph> build_vae_encoder(const VaeConfig& config, const WeightSource& weights, int batch, int height,
                                    int width) {
  const Vae vae = TRY(Vae::from(config, weights));
  Builder b("vae_encoder");
  Value x = vae.encoder.forward(b, b.input("image", {batch, height, width, 3}));
  if (vae.quant_conv) x = vae.quant_conv->forward(b, x);
  b.output("moments", x);
  return std::move(b).finish();
}

}  // namespace sfumato::models
