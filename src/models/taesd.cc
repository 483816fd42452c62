#include "models/taesd.h"

#include "base/strings.h"
#include "models/config.h"
#include "nn/layers.h"

namespace sfumato::models {
namespace {

using nn::Builder;
using nn::Value;

Value convolve(Builder& b, WeightView w, Value x, int64_t in, int64_t out, bool has_bias = true) {
  const Value weight = nn::value_of(b, w.require("weight", {out, in, 3, 3}));
  const Value bias = has_bias ? nn::value_of(b, w.require("bias", {out})) : Value{};
  return b.conv2d(x, weight, bias, {.stride = 1, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1});
}

Value relu(Builder& b, Value x) {
  return b.unary(ir::UnaryKind::kRelu, x);
}

/// AutoencoderTinyBlock: three convolutions around which x goes.
Value block(Builder& b, WeightView w, Value x, int64_t channels) {
  Value y = relu(b, convolve(b, w / "conv" / 0, x, channels, channels));
  y = relu(b, convolve(b, w / "conv" / 2, y, channels, channels));
  return relu(b, b.add(x, convolve(b, w / "conv" / 4, y, channels, channels)));
}

}  // namespace

Result<TaesdConfig> parse_taesd_config(const std::string& json) {
  ConfigReader c = TRY(ConfigReader::parse("taesd", json));
  TaesdConfig out;
  if (c.text("_class_name", "AutoencoderTiny") != "AutoencoderTiny") c.fault("_class_name expected AutoencoderTiny");
  out.latent_channels = static_cast<int>(c.integer("latent_channels", 4, 1, 64));
  out.decoder_block_out_channels = c.integers("decoder_block_out_channels", out.decoder_block_out_channels);
  out.num_decoder_blocks = c.integers("num_decoder_blocks", out.num_decoder_blocks);
  const std::vector<int64_t>& channels = out.decoder_block_out_channels;
  if (channels.empty() || channels.size() != out.num_decoder_blocks.size() || channels.size() > 8)
    c.fault("decoder_block_out_channels and num_decoder_blocks expected 1 to 8 entries each, as many of both");
  for (const int64_t count : channels)
    if (count != channels[0]) c.fault("decoder_block_out_channels expected equal entries");
  c.refuse("out_channels", 3);
  c.refuse("act_fn", "relu");
  c.refuse("upsampling_scaling_factor", 2);
  c.refuse("upsample_fn", "nearest");
  c.refuse("scaling_factor", 1.0);
  TRY(c.finish());
  return out;
}

Result<ir::Graph> build_taesd_decoder(const TaesdConfig& config, const WeightSource& weights, int batch, int height,
                                      int width) {
  WeightLedger ledger(weights);
  const WeightView layers = WeightView(ledger) / "decoder" / "layers";  // a torch Sequential: numbered
  Builder b("taesd_decoder");
  const Value latent = b.input("latent", {batch, height, width, config.latent_channels});
  const int64_t channels = config.decoder_block_out_channels[0];
  Value x = b.scale(b.unary(ir::UnaryKind::kTanh, b.scale(latent, 1.0f / 3)), 3);  // outliers are drawn in
  x = relu(b, convolve(b, layers / 0, x, config.latent_channels, channels));
  int index = 2;
  for (size_t i = 0; i < config.num_decoder_blocks.size(); ++i) {
    for (int64_t k = 0; k < config.num_decoder_blocks[i]; ++k) x = block(b, layers / index++, x, channels);
    const bool is_last = i + 1 == config.num_decoder_blocks.size();
    if (!is_last) {
      ++index;  // the upsampling
      x = b.upsample_nearest(x, 2 * b.shape(x)[1], 2 * b.shape(x)[2]);
    }
    x = convolve(b, layers / index++, x, channels, is_last ? 3 : channels, is_last);
  }
  TRY(ledger.finish("taesd", {"encoder."}));
  b.output("image", x);
  return std::move(b).finish();
}

}  // namespace sfumato::models
