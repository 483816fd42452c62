#pragma once
// The conditional U-Net of Stable Diffusion: diffusers' UNet2DConditionModel.
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "weights/weight_source.h"

namespace sfumato::models {

/// The fields of unet/config.json that shape the network; names are the file's. Lists have one entry a block.
struct UNetConfig {
  int64_t in_channels = 4, out_channels = 4;
  int64_t sample_size = 64;  ///< latent side it was trained at
  std::vector<int64_t> block_out_channels = {320, 640, 1280, 1280};
  std::vector<bool> down_attention, up_attention;  ///< from down_block_types and up_block_types
  bool mid_attention = true;
  int64_t layers_per_block = 2;
  std::vector<int64_t> attention_heads;  ///< number of heads: attention_head_dim by its historic meaning
  std::vector<int64_t> transformer_layers_per_block;
  std::vector<bool> only_cross_attention;
  int64_t cross_attention_dim = 1280;
  int64_t norm_num_groups = 32;
  float norm_eps = 1e-5f;
  bool flip_sin_to_cos = true;
  float freq_shift = 0;
  int64_t conv_in_kernel = 3, conv_out_kernel = 3;
  std::string addition_embed_type;  ///< "" or "text_time" (SDXL)
  int64_t addition_time_embed_dim = 256;
  int64_t projection_class_embeddings_input_dim = 2816;

  int64_t time_embed_dim() const { return 4 * block_out_channels[0]; }
  /// Width of the pooled text that "text_time" takes: what six embedded sizes leave.
  int64_t pooled_dim() const { return projection_class_embeddings_input_dim - 6 * addition_time_embed_dim; }
};

/// Errors name the field; features of other U-Nets (class embeddings, ...) are refused by name.
Result<UNetConfig> parse_unet_config(const std::string& json);

/// Inputs, in order: "sample" [batch,height,width,in_channels], "timestep" [batch], "context" [batch,tokens,
/// cross_attention_dim], and for "text_time": "text_embeds" [batch,pooled_dim], "time_ids" [batch,6].
/// Output "out" [batch,height,width,out_channels]. Any height and width: sizes that do not halve evenly are upsampled
/// to the size of the skip they meet. Errors name missing, left-over and mis-shaped tensors.
Result<ir::Graph> build_unet(const UNetConfig& config, const WeightSource& weights, int batch, int height, int width,
                             int tokens);

/// The inputs that stay the same from step to step.
inline const std::vector<std::string> kUNetSlowInputs = {"context", "text_embeds", "time_ids"};

}  // namespace sfumato::models
