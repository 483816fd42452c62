#include "models/clip.h"

#include <cmath>

#include "base/strings.h"
#include "models/config.h"
#include "nn/layers.h"

namespace sfumato::models {
namespace {

using nn::Builder;
using nn::Value;

struct EncoderLayer {
  nn::LayerNorm layer_norm1, layer_norm2;
  nn::Linear q_proj, k_proj, v_proj, out_proj, fc1, fc2;

  static EncoderLayer from(WeightView w, const ClipTextConfig& c) {
    const int64_t width = c.hidden_size;
    const WeightView attention = w / "self_attn", mlp = w / "mlp";
    return {nn::LayerNorm::from(w / "layer_norm1", width, c.layer_norm_eps),
            nn::LayerNorm::from(w / "layer_norm2", width, c.layer_norm_eps),
            nn::Linear::from(attention / "q_proj", width, width),
            nn::Linear::from(attention / "k_proj", width, width),
            nn::Linear::from(attention / "v_proj", width, width),
            nn::Linear::from(attention / "out_proj", width, width),
            nn::Linear::from(mlp / "fc1", width, c.intermediate_size),
            nn::Linear::from(mlp / "fc2", c.intermediate_size, width)};
  }
  Value forward(Builder& b, Value x, const ClipTextConfig& c) const {
    const int heads = static_cast<int>(c.num_attention_heads);
    const float scale = 1 / std::sqrt(static_cast<float>(c.hidden_size / heads));
    const Value h = layer_norm1.forward(b, x);
    const Value mixed = b.attention(q_proj.forward(b, h), k_proj.forward(b, h), v_proj.forward(b, h),
                                    {.heads = heads, .scale = scale, .causal = true});
    x = b.add(x, out_proj.forward(b, mixed));
    const Value wide = b.unary(*nn::activation_of(c.hidden_act), fc1.forward(b, layer_norm2.forward(b, x)));
    return b.add(x, fc2.forward(b, wide));
  }
};

struct ClipText {
  Param token_embedding, position_embedding;
  std::vector<EncoderLayer> layers;
  nn::LayerNorm final_layer_norm;
  std::optional<nn::Linear> text_projection;

  static ClipText from(WeightView root, const ClipTextConfig& c) {
    const WeightView w = root.has("text_model.final_layer_norm.weight") ? root / "text_model" : root;
    const WeightView embeddings = w / "embeddings";
    ClipText model{embeddings.require("token_embedding.weight", {c.vocab_size, c.hidden_size}),
                   embeddings.require("position_embedding.weight", {c.max_position_embeddings, c.hidden_size}),
                   {},
                   nn::LayerNorm::from(w / "final_layer_norm", c.hidden_size, c.layer_norm_eps),
                   std::nullopt};
    for (int i = 0; i < c.num_hidden_layers; ++i)
      model.layers.push_back(EncoderLayer::from(w / "encoder" / "layers" / i, c));
    if (root.has("text_projection.weight"))
      model.text_projection = nn::Linear::from(root / "text_projection", c.hidden_size, c.projection_dim, false);
    return model;
  }
};

}  // namespace

Result<ClipTextConfig> parse_clip_text_config(const std::string& json) {
  ConfigReader c = TRY(ConfigReader::parse("text_encoder", json));
  ClipTextConfig out;
  out.vocab_size = c.integer("vocab_size", out.vocab_size);
  out.hidden_size = c.integer("hidden_size", 512);
  out.intermediate_size = c.integer("intermediate_size", 2048);
  out.num_hidden_layers = c.integer("num_hidden_layers", 12, 1, 256);
  out.num_attention_heads = c.integer("num_attention_heads", 8);
  out.max_position_embeddings = c.integer("max_position_embeddings", 77);
  out.hidden_act = c.text("hidden_act", "quick_gelu");
  out.layer_norm_eps = static_cast<float>(c.number("layer_norm_eps", 1e-5));
  out.projection_dim = c.integer("projection_dim", 512);
  if (!nn::activation_of(out.hidden_act)) c.fault(str("hidden_act \"", out.hidden_act, "\" is not supported"));
  if (out.hidden_size % out.num_attention_heads != 0)
    c.fault(
        str("hidden_size ", out.hidden_size, " expected to be a multiple of its ", out.num_attention_heads, " heads"));
  if (out.vocab_size != 49408 || out.max_position_embeddings != 77)
    c.fault(str("expected CLIP's 49408 words and 77 positions, got ", out.vocab_size, " and ",
                out.max_position_embeddings));
  TRY(c.finish());
  return out;
}

Result<ir::Graph> build_clip_text(const ClipTextConfig& config, const WeightSource& weights, int batch,
                                  const ClipTextOutput& output) {
  WeightLedger ledger(weights);
  const ClipText model = ClipText::from(WeightView(ledger), config);
  TRY(ledger.finish("text_encoder"));
  const int used = static_cast<int>(config.num_hidden_layers) - output.skip;
  if (used < 1)
    return usage_error(str("[models.clip] clip skip expected to leave a layer of the text encoder's ",
                           config.num_hidden_layers, ", got ", output.skip, " left out; use a smaller one"));
  Builder b("text_encoder");
  const int64_t tokens = config.max_position_embeddings;
  const Value ids = b.input("ids", {batch, tokens}, DType::kI32);
  const Value end = b.input("end", {batch}, DType::kI32);
  const Value positions = b.reshape(nn::value_of(b, model.position_embedding), {1, tokens, config.hidden_size});
  const Value words = b.embedding(ids, nn::value_of(b, model.token_embedding));
  Value x = b.add(words, positions), hidden;
  const int needed = model.text_projection ? static_cast<int>(config.num_hidden_layers) : used;
  for (int i = 0; i < needed; ++i) {
    x = model.layers[static_cast<size_t>(i)].forward(b, x, config);
    if (i + 1 == used) hidden = x;
  }
  b.output("hidden", output.final_norm ? model.final_layer_norm.forward(b, hidden) : hidden);
  if (model.text_projection) {
    const Value pooled = b.gather_row(model.final_layer_norm.forward(b, x), end);
    b.output("pooled", model.text_projection->forward(b, pooled));
  }
  return std::move(b).finish();
}

}  // namespace sfumato::models
