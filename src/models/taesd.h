#pragma once
// The tiny autoencoder for previews: diffusers' AutoencoderTiny (madebyollin/taesd), its decoder.
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "weights/weight_source.h"

namespace sfumato::models {

/// The fields of its config.json; names are the file's.
struct TaesdConfig {
  int latent_channels = 4;
  std::vector<int64_t> decoder_block_out_channels = {64, 64, 64, 64}, num_decoder_blocks = {3, 3, 3, 1};

  int factor() const { return 1 << (static_cast<int>(num_decoder_blocks.size()) - 1); }
};

/// Errors name the field.
Result<TaesdConfig> parse_taesd_config(const std::string& json);

/// Input "latent" [batch,height,width,latent_channels] as samplers have it (unit deviation); output "image"
/// [batch,f*height,f*width,3] in about 0..1, f = config.factor(). Errors name missing and mis-shaped tensors, and
/// left-over ones but the encoder's.
Result<ir::Graph> build_taesd_decoder(const TaesdConfig& config, const WeightSource& weights, int batch, int height,
                                      int width);

}  // namespace sfumato::models
