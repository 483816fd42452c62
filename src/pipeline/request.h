#pragma once
// What a person asks for, and what they get. Plain data; absent means "as the model says".
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "image/image.h"
#include "pipeline/latents.h"
#include "sampling/names.h"
#include "sampling/noise.h"
#include "tensor/tensor.h"

namespace sfumato {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

/// One step of the work, for progress bars; also the place to stop.
struct Progress {
  enum class Stage { kText, kEncode, kSample, kDecode };
  Stage stage = Stage::kSample;
  int batch = 0, batches = 1;            ///< which batch of the request
  int step = 0, steps = 0;               ///< done and to do, in this batch; PNDM counts network passes
  std::span<const float> denoised = {};  ///< while sampling: the current estimate of the latents, [B,C,h,w]
  LatentSize latent = {};                ///< its C, h and w
};
/// "text", "encode", "sample", "decode".
std::string_view stage_name(Progress::Stage stage);

/// Called before the text encoders, before the init image is encoded, after each step, and before each picture is
/// decoded. Return false to stop: generate() then answers with ErrorKind::kCancelled within one step.
using ProgressFn = std::function<bool(const Progress&)>;

struct Picture {
  Image image;
  std::string prompt;
  uint32_t seed = 0;
  Tensor latents;          ///< [4,h,w], the sampler's result
  std::string parameters;  ///< the PNG `parameters` text (image/parameters.h)
};

/// Called with each picture as soon as it is done, in order; an error ends the work.
using PictureFn = std::function<Result<void>(size_t index, const Picture&)>;

struct Request {
  std::vector<std::string> prompts = {""};     ///< `images` pictures are made of each
  std::optional<std::string> negative_prompt;  ///< absent differs from "" on SDXL (zeros, not the encoded "")
  int images = 1;                              ///< per prompt; picture i has seed + i, over all prompts
  int batch_size = 0;                          ///< pictures a pass of the network; 0: by their size, at most 4
  std::optional<Size> size;                    ///< multiples of 8; a side of 0 is the model's own
  std::optional<int> steps;                    ///< 1..1000
  std::optional<float> guidance;               ///< <= 1: no guidance, the unconditional half is skipped
  float guidance_rescale = 0;                  ///< 0..1 (Lin et al. 2023, section 3.4)
  uint32_t seed = 0;                           ///< of the first picture
  sampling::RngKind rng = sampling::RngKind::kCpu;
  std::optional<sampling::SamplerKind> sampler;
  std::optional<sampling::ScheduleKind> schedule;
  std::optional<sampling::PredictionType> prediction;
  int clip_skip = 1;                               ///< 1: the last layer, as the model means it; 2: the one before
  std::shared_ptr<const Image> init_image;         ///< image to image
  std::shared_ptr<const Image> mask;               ///< white: repaint; needs init_image
  float strength = 0.75f;                          ///< 0..1, the part of the steps that is run
  std::optional<Size> original_size, target_size;  ///< SDXL size conditioning; default: size
  int crop_top = 0, crop_left = 0;                 ///< SDXL crop conditioning
  ProgressFn on_progress;
  PictureFn on_picture;
};

}  // namespace sfumato
