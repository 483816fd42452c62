#pragma once
// Prompts to what the U-Net reads.
#include <optional>
#include <string>
#include <vector>

#include "pipeline/programs.h"

namespace sfumato {

/// CLIP's window: begin, 75 tokens, end.
inline constexpr int kPromptTokens = 77;

struct Conditioning {
  Tensor context;  ///< [77, C]
  Tensor pooled;   ///< [P]; empty for models without size conditioning
};

/// Runs every text encoder of the model. What did not fit into 77 tokens is named in `warnings`.
Result<Conditioning> encode_prompt(const Model& model, Programs& programs, const std::string& prompt, int clip_skip,
                                   std::vector<std::string>& warnings);

/// The negative side. An absent prompt is "" for SD1 and SD2, and zeros for models that say
/// force_zeros_for_empty_prompt (SDXL base does); a given "" is always encoded. Clip skip does not apply to it, as in
/// diffusers.
Result<Conditioning> encode_negative(const Model& model, Programs& programs, const std::optional<std::string>& prompt,
                                     std::vector<std::string>& warnings);

}  // namespace sfumato
