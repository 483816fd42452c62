#pragma once
// The text encoders: CLIP's and OpenCLIP's transformers, as transformers' CLIPTextModel(WithProjection).
#include <string>

#include "base/result.h"
#include "ir/graph.h"
#include "weights/weight_source.h"

namespace sfumato::models {

/// The fields of text_encoder/config.json; names are the file's.
struct ClipTextConfig {
  int64_t vocab_size = 49408, hidden_size = 768, intermediate_size = 3072;
  int64_t num_hidden_layers = 12, num_attention_heads = 12, max_position_embeddings = 77;
  std::string hidden_act = "quick_gelu";
  float layer_norm_eps = 1e-5f;
  int64_t projection_dim = 768;
};

/// Which hidden state the U-Net reads.
struct ClipTextOutput {
  int skip = 0;            ///< layers left out at the end: 0 is the last layer's output
  bool final_norm = true;  ///< the final layer norm applied to it: SD1 and SD2, not SDXL
};

Result<ClipTextConfig> parse_clip_text_config(const std::string& json);

/// Inputs "ids" I32 [batch,77] and "end" I32 [batch], the position of each sequence's first end token. Outputs "hidden"
/// [batch,77,hidden_size], and if the weights have a text_projection, "pooled" [batch,projection_dim]: the end token's
/// row after the last layer and the final norm, projected. Tensor names may lack the prefix "text_model.".
Result<ir::Graph> build_clip_text(const ClipTextConfig& config, const WeightSource& weights, int batch,
                                  const ClipTextOutput& output);

}  // namespace sfumato::models
