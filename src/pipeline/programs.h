#pragma once
// The networks of a model, compiled on first use for each static shape and kept.
#include <map>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "pipeline/model.h"

namespace sfumato {

/// Text encoder `index` for `batch` prompts, read `clip_skip` - 1 layers early. SD1 and SD2 read the last layer,
/// normalised; SDXL the one before it, as it is.
Result<ir::Graph> build_text_encoder(const Model& model, int index, int batch, int clip_skip = 1);

/// One program a network is kept: packed weights are most of what it holds, and every program has its own. Another
/// shape replaces it. Pointers stay valid until the next call.
class Programs {
 public:
  Programs(const Model& model, Backend& backend, Precision precision)
      : model_(model), backend_(backend), precision_(precision) {}

  const Backend& backend() const { return backend_; }

  /// Encoder `index` for one prompt, stopping `clip_skip` - 1 layers early.
  Result<Executable*> text_encoder(int index, int clip_skip);
  /// On every device, for `batch` latents of `height` x `width` and `tokens` text tokens.
  Result<Executable*> unet(int batch, int height, int width, int tokens);
  /// On every device, for one latent of `height` x `width` at a time.
  Result<Executable*> vae_decoder(int height, int width, Precision precision);
  /// One latent at a time. The model must have a taesd.
  Result<Executable*> taesd_decoder(int height, int width);
  /// One picture of `height` x `width` at a time.
  Result<Executable*> vae_encoder(int height, int width);

 private:
  struct Entry {
    std::string shape;
    std::unique_ptr<Executable> program;
  };
  template <class Build>
  Result<Executable*> get(const std::string& network, std::string shape,
                          const std::shared_ptr<const WeightSource>& weights, const CompileOptions& options,
                          Build build);

  const Model& model_;
  Backend& backend_;
  Precision precision_;
  std::map<std::string, Entry> entries_;  // by network
};

}  // namespace sfumato
