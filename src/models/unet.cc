#include "models/unet.h"

#include <algorithm>

#include "base/strings.h"
#include "models/config.h"
#include "nn/transformer.h"

namespace sfumato::models {
namespace {

using nn::Builder;
using nn::Value;

/// What both sides of the U are made of: residual blocks, each with or without a transformer, then a change of size.
struct Block {
  std::vector<nn::ResnetBlock> resnets;
  std::vector<nn::Transformer2D> attentions;
  std::optional<nn::Conv2d> downsampler, upsampler;
};

struct BlockConfig {
  bool attention;
  int64_t heads, depth;
  bool only_cross_attention;
};

class UNet {
 public:
  static UNet from(WeightView w, const UNetConfig& c) {
    UNet net;
    net.config_ = c;
    const int64_t temb = c.time_embed_dim(), first = c.block_out_channels[0];
    net.conv_in_ = nn::Conv2d::from(w / "conv_in", c.in_channels, first, c.conv_in_kernel);
    net.time_embedding_ = nn::TimestepEmbedding::from(w / "time_embedding", first, temb);
    if (c.addition_embed_type == "text_time")
      net.add_embedding_ =
          nn::TimestepEmbedding::from(w / "add_embedding", c.projection_class_embeddings_input_dim, temb);

    const size_t count = c.block_out_channels.size();
    std::vector<int64_t> skips = {first};
    int64_t channels = first;
    for (size_t i = 0; i < count; ++i) {
      const WeightView view = w / "down_blocks" / static_cast<int>(i);
      const BlockConfig block{c.down_attention[i], c.attention_heads[i], c.transformer_layers_per_block[i],
                              c.only_cross_attention[i]};
      net.down_blocks_.push_back(net.down(view, block, channels, c.block_out_channels[i], i + 1 < count, skips));
      channels = c.block_out_channels[i];
    }
    net.mid(w / "mid_block", channels);
    for (size_t i = 0; i < count; ++i) {
      const size_t mirror = count - 1 - i;
      const WeightView view = w / "up_blocks" / static_cast<int>(i);
      const BlockConfig block{c.up_attention[i], c.attention_heads[mirror], c.transformer_layers_per_block[mirror],
                              c.only_cross_attention[mirror]};
      net.up_blocks_.push_back(net.up(view, block, channels, c.block_out_channels[mirror], i + 1 < count, skips));
      channels = c.block_out_channels[mirror];
    }
    net.conv_norm_out_ = net.group_norm(w / "conv_norm_out", channels);
    net.conv_out_ = nn::Conv2d::from(w / "conv_out", channels, c.out_channels, c.conv_out_kernel);
    return net;
  }

  Value forward(Builder& b, Value sample, Value timestep, Value context, Value text_embeds, Value time_ids) const {
    const Value temb = embed(b, timestep, text_embeds, time_ids);
    Value x = conv_in_.forward(b, sample);
    std::vector<Value> skips = {x};
    for (const Block& block : down_blocks_) {
      for (size_t i = 0; i < block.resnets.size(); ++i) {
        x = block.resnets[i].forward(b, x, temb);
        if (!block.attentions.empty()) x = block.attentions[i].forward(b, x, context);
        skips.push_back(x);
      }
      if (block.downsampler) skips.push_back(x = block.downsampler->forward(b, x, 2));
    }
    x = mid_block_.resnets[0].forward(b, x, temb);
    for (size_t i = 1; i < mid_block_.resnets.size(); ++i) {
      if (!mid_block_.attentions.empty()) x = mid_block_.attentions[i - 1].forward(b, x, context);
      x = mid_block_.resnets[i].forward(b, x, temb);
    }
    for (const Block& block : up_blocks_) {
      for (size_t i = 0; i < block.resnets.size(); ++i) {
        x = block.resnets[i].forward(b, b.concat({x, skips.back()}), temb);
        skips.pop_back();
        if (!block.attentions.empty()) x = block.attentions[i].forward(b, x, context);
      }
      if (block.upsampler) {
        const Shape& next = b.shape(skips.back());
        x = block.upsampler->forward(b, b.upsample_nearest(x, next[1], next[2]));
      }
    }
    return conv_out_.forward(b, b.silu(conv_norm_out_.forward(b, x)));
  }

 private:
  nn::GroupNorm group_norm(WeightView w, int64_t channels) const {
    return nn::GroupNorm::from(w, channels, static_cast<int>(config_.norm_num_groups), config_.norm_eps);
  }
  nn::ResnetBlock resnet(WeightView w, int64_t in, int64_t out) const {
    return nn::ResnetBlock::from(w, in, out, config_.time_embed_dim(), static_cast<int>(config_.norm_num_groups),
                                 config_.norm_eps);
  }
  nn::Transformer2D transformer(WeightView w, int64_t channels, const BlockConfig& c) const {
    return nn::Transformer2D::from(w, channels, config_.cross_attention_dim, static_cast<int>(c.heads),
                                   static_cast<int>(c.depth), static_cast<int>(config_.norm_num_groups),
                                   c.only_cross_attention);
  }

  Block down(WeightView w, const BlockConfig& c, int64_t in, int64_t out, bool shrink, std::vector<int64_t>& skips) {
    Block block;
    for (int i = 0; i < config_.layers_per_block; ++i) {
      block.resnets.push_back(resnet(w / "resnets" / i, i == 0 ? in : out, out));
      if (c.attention) block.attentions.push_back(transformer(w / "attentions" / i, out, c));
      skips.push_back(out);
    }
    if (shrink) {
      block.downsampler = nn::Conv2d::from(w / "downsamplers" / 0 / "conv", out, out);
      skips.push_back(out);
    }
    return block;
  }

  void mid(WeightView w, int64_t channels) {
    const BlockConfig c{config_.mid_attention, config_.attention_heads.back(),
                        config_.transformer_layers_per_block.back(), false};
    mid_block_.resnets.push_back(resnet(w / "resnets" / 0, channels, channels));
    mid_block_.resnets.push_back(resnet(w / "resnets" / 1, channels, channels));
    if (c.attention) mid_block_.attentions.push_back(transformer(w / "attentions" / 0, channels, c));
  }

  Block up(WeightView w, const BlockConfig& c, int64_t in, int64_t out, bool grow, std::vector<int64_t>& skips) {
    Block block;
    for (int i = 0; i <= config_.layers_per_block; ++i) {
      block.resnets.push_back(resnet(w / "resnets" / i, (i == 0 ? in : out) + skips.back(), out));
      skips.pop_back();
      if (c.attention) block.attentions.push_back(transformer(w / "attentions" / i, out, c));
    }
    if (grow) block.upsampler = nn::Conv2d::from(w / "upsamplers" / 0 / "conv", out, out);
    return block;
  }

  /// The time embedding, plus SDXL's pooled text and sizes.
  Value embed(Builder& b, Value timestep, Value text_embeds, Value time_ids) const {
    const auto sinusoid = [&](Value t, int64_t dim) {
      return b.timestep_embedding(
          t, {.dim = dim, .flip_sin_to_cos = config_.flip_sin_to_cos, .shift = config_.freq_shift});
    };
    const Value temb = time_embedding_.forward(b, sinusoid(timestep, config_.block_out_channels[0]));
    if (!add_embedding_) return temb;
    const Value sizes = sinusoid(time_ids, config_.addition_time_embed_dim);
    const Shape& s = b.shape(sizes);
    const Value joined = b.concat({text_embeds, b.reshape(sizes, {s[0], s[1] * s[2]})});
    return b.add(temb, add_embedding_->forward(b, joined));
  }

  UNetConfig config_;
  nn::Conv2d conv_in_, conv_out_;
  nn::TimestepEmbedding time_embedding_;
  std::optional<nn::TimestepEmbedding> add_embedding_;
  std::vector<Block> down_blocks_, up_blocks_;
  Block mid_block_;
  nn::GroupNorm conv_norm_out_;
};

/// Block types by name: does it attend to the prompt?
std::vector<bool> attends(ConfigReader& c, const char* key, const std::vector<std::string>& fallback,
                          const std::string& with, const std::string& without, size_t count) {
  std::vector<bool> out;
  for (const std::string& type : c.texts(key, fallback)) {
    if (type != with && type != without) c.fault(str(key, " has \"", type, "\", which is not supported"));
    out.push_back(type == with);
  }
  if (out.size() != count) c.fault(str(key, " expected ", count, " entries, got ", out.size()));
  out.resize(count);
  return out;
}

void refuse_other_unets(ConfigReader& c) {
  for (const char* key :
       {"class_embed_type", "num_class_embeds", "encoder_hid_dim", "encoder_hid_dim_type", "time_cond_proj_dim",
        "timestep_post_act", "cross_attention_norm", "time_embedding_act_fn", "time_embedding_dim"})
    c.refuse(key);
  c.refuse("resnet_time_scale_shift", "default");
  c.refuse("act_fn", "silu");
  c.refuse("dual_cross_attention", false);
  c.refuse("class_embeddings_concat", false);
  c.refuse("resnet_skip_time_act", false);
  c.refuse("attention_type", "default");
  c.refuse("time_embedding_type", "positional");
  c.refuse("mid_block_scale_factor", 1);
  c.refuse("resnet_out_scale_factor", 1.0);
  c.refuse("downsample_padding", 1);
  c.refuse("mid_block_only_cross_attention", false);
  c.refuse("center_input_sample", false);
}

}  // namespace

Result<UNetConfig> parse_unet_config(const std::string& json) {
  ConfigReader c = TRY(ConfigReader::parse("unet", json));
  UNetConfig out;
  out.in_channels = c.integer("in_channels", 4);
  out.out_channels = c.integer("out_channels", 4);
  out.sample_size = c.integer("sample_size", 64);
  out.block_out_channels = c.integers("block_out_channels", out.block_out_channels);
  const size_t count = out.block_out_channels.size();
  const std::string cross_down = "CrossAttnDownBlock2D", cross_up = "CrossAttnUpBlock2D";
  out.down_attention = attends(c, "down_block_types", {cross_down, cross_down, cross_down, "DownBlock2D"}, cross_down,
                               "DownBlock2D", count);
  out.up_attention =
      attends(c, "up_block_types", {"UpBlock2D", cross_up, cross_up, cross_up}, cross_up, "UpBlock2D", count);
  const std::string mid = c.text("mid_block_type", "UNetMidBlock2DCrossAttn");
  if (mid != "UNetMidBlock2DCrossAttn" && mid != "UNetMidBlock2D")
    c.fault(str("mid_block_type has \"", mid, "\", which is not supported"));
  out.mid_attention = mid == "UNetMidBlock2DCrossAttn";
  out.layers_per_block = c.integer("layers_per_block", 2, 1, 16);
  out.attention_heads =
      c.per_block(c.has("num_attention_heads") ? "num_attention_heads" : "attention_head_dim", 8, count);
  out.transformer_layers_per_block = c.per_block("transformer_layers_per_block", 1, count);
  out.only_cross_attention = c.per_block_flags("only_cross_attention", false, count);
  out.cross_attention_dim = c.integer("cross_attention_dim", 1280);
  out.norm_num_groups = c.integer("norm_num_groups", 32);
  out.norm_eps = static_cast<float>(c.number("norm_eps", 1e-5));
  out.flip_sin_to_cos = c.boolean("flip_sin_to_cos", true);
  out.freq_shift = static_cast<float>(c.number("freq_shift", 0));
  out.conv_in_kernel = c.integer("conv_in_kernel", 3, 1, 7);
  out.conv_out_kernel = c.integer("conv_out_kernel", 3, 1, 7);
  out.addition_embed_type = c.text("addition_embed_type", "");
  if (!out.addition_embed_type.empty() && out.addition_embed_type != "text_time")
    c.fault(str("addition_embed_type \"", out.addition_embed_type, "\" is not supported; expected text_time or null"));
  out.addition_time_embed_dim = c.integer("addition_time_embed_dim", 256);
  out.projection_class_embeddings_input_dim = c.integer("projection_class_embeddings_input_dim", 2816);
  refuse_other_unets(c);
  for (size_t i = 0; i < count; ++i) {
    const int64_t channels = out.block_out_channels[i];
    if (channels % out.norm_num_groups != 0)
      c.fault(
          str("block_out_channels ", channels, " expected to be a multiple of norm_num_groups ", out.norm_num_groups));
    if (channels % out.attention_heads[i] != 0)
      c.fault(
          str("block_out_channels ", channels, " expected to be a multiple of its ", out.attention_heads[i], " heads"));
  }
  if (out.addition_embed_type == "text_time" && out.pooled_dim() < 1)
    c.fault("projection_class_embeddings_input_dim leaves no room for the pooled text");
  TRY(c.finish());
  return out;
}

Result<ir::Graph> build_unet(const UNetConfig& config, const WeightSource& weights, int batch, int height, int width,
                             int tokens) {
  WeightLedger ledger(weights);
  const UNet net = UNet::from(WeightView(ledger), config);
  TRY(ledger.finish("unet"));
  Builder b("unet");
  const Value sample = b.input("sample", {batch, height, width, config.in_channels});
  const Value timestep = b.input("timestep", {batch});
  const Value context = b.input("context", {batch, tokens, config.cross_attention_dim});
  Value text_embeds, time_ids;
  if (config.addition_embed_type == "text_time") {
    text_embeds = b.input("text_embeds", {batch, config.pooled_dim()});
    time_ids = b.input("time_ids", {batch, 6});
  }
  b.output("out", net.forward(b, sample, timestep, context, text_embeds, time_ids));
  return std::move(b).finish();
}

}  // namespace sfumato::models
