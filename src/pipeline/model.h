#pragma once
// A checkpoint, opened: configurations parsed, weights mapped, nothing computed yet.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/clip.h"
#include "models/taesd.h"
#include "models/unet.h"
#include "models/vae.h"
#include "pipeline/request.h"
#include "sampling/schedule.h"
#include "weights/weight_source.h"

namespace sfumato {

/// One text encoder and the id that fills its 77 tokens after the end token.
struct TextEncoder {
  models::ClipTextConfig config;
  std::shared_ptr<const WeightSource> weights;
  int pad_id = 0;
};

/// One line of `sfumato info MODEL`.
struct ComponentInfo {
  std::string name;        ///< "unet"
  std::string class_name;  ///< "UNet2DConditionModel"
  std::string dtype;       ///< of most of its elements: "F16"
  int64_t parameters = 0;
  int64_t bytes = 0;
};

/// The linear map from a latent's channels to red, green and blue in -1..1 that previews use.
struct LatentRgb {
  std::array<std::array<float, 3>, 4> factors;
  std::array<float, 3> bias;
};

/// What a model is and what it does when not told otherwise.
struct ModelInfo {
  std::string name;    ///< the folder's
  std::string family;  ///< "SD1", "SD2", "SDXL"
  std::string hash;    ///< 10 hexadecimal digits
  Size default_size;
  int default_steps = 20;
  float default_guidance = 7.5f;
  sampling::SchedulerConfig scheduler;
  LatentRgb latent_rgb;
  std::vector<ComponentInfo> components;
};

/// A tiny autoencoder in a folder of its own.
struct Taesd {
  models::TaesdConfig config;
  std::shared_ptr<const WeightSource> weights;

  /// A folder with config.json and weights, as AutoencoderTiny.save_pretrained writes it.
  static Result<Taesd> open(const std::filesystem::path& folder);
};

struct Model {
  ModelInfo info;
  std::vector<TextEncoder> text_encoders;  ///< two for SDXL: their outputs are joined along channels
  models::UNetConfig unet;
  std::shared_ptr<const WeightSource> unet_weights;
  models::VaeConfig vae;
  std::shared_ptr<const WeightSource> vae_weights;
  bool zero_absent_negative = false;  ///< SDXL's force_zeros_for_empty_prompt
  std::optional<Taesd> taesd;         ///< for previews; none: a linear map

  bool has_size_conditioning() const { return unet.addition_embed_type == "text_time"; }
  /// The autoencoder's factor between picture and latent: 8 for all published models.
  int vae_factor() const { return 1 << (static_cast<int>(vae.block_out_channels.size()) - 1); }

  /// Opens a folder in diffusers layout; empty: the embedded model. Errors name the file or field at fault.
  static Result<Model> open(const std::filesystem::path& path);
  /// Random weights in the shapes of "sd15", "sd21" or "sdxl": what it draws is noise, at that model's speed.
  static Result<Model> open_synthetic(const std::string& name);
};

/// The folder of a model that comes with Sfumato, "emoji" or "synthetic/sd15": in $SFUMATO_MODELS, or beside the
/// program (share/sfumato/models, or the source tree it was built from).
Result<std::filesystem::path> own_model_path(const std::string& name);

}  // namespace sfumato
