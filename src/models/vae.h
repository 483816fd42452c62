#pragma once
// The autoencoder between pictures and latents: diffusers' AutoencoderKL.
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "weights/weight_source.h"

namespace sfumato::models {

/// The fields of vae/config.json; names are the file's.
struct VaeConfig {
  std::vector<int64_t> block_out_channels = {128, 256, 512, 512};
  int64_t layers_per_block = 2;
  int latent_channels = 4;
  int64_t norm_num_groups = 32;
  bool mid_block_add_attention = true;
  bool use_quant_conv = true, use_post_quant_conv = true;
  float scaling_factor = 0.18215f;  ///< latents of unit deviation = encoder's latents * scaling_factor
};

Result<VaeConfig> parse_vae_config(const std::string& json);

/// Input "latent" [batch,height,width,latent_channels], already divided by scaling_factor; output "image"
/// [batch,f*height,f*width,3] in about -1..1, f = 2^(blocks - 1). Attention weights may have the names of before 2023
/// (query, key, value, proj_attn). Errors name missing, left-over and mis-shaped tensors of both halves.
Result<ir::Graph> build_vae_decoder(const VaeConfig& config, const WeightSource& weights, int batch, int height,
                                    int width);
/// Input "image" [batch,height,width,3] in -1..1; output "moments" [batch,height/f,width/f,2*latent_channels]: mean and
/// log variance.
Result<ir::Graph> build_vae_encoder(const VaeConfig& config, const WeightSource& weights, int batch, int height,
                                    int width);

}  // namespace sfumato::models
