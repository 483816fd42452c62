#pragma once
// The `parameters` text that front ends read from and write into pictures (A1111's "infotext"):
//
//     <prompt>
//     Negative prompt: <text>
//     Steps: 20, Sampler: Euler, ..., Version: sfumato 0.1
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sfumato {

struct GenerationInfo {
  std::string prompt, negative;                             ///< negative: empty leaves its line out
  std::vector<std::pair<std::string, std::string>> fields;  ///< in the order written
  bool operator==(const GenerationInfo&) const = default;

  /// The value of a field; null if it is not there.
  const std::string* find(std::string_view key) const;
};

/// Values that hold ',', ':', '"' or a line break, or that begin or end with a space, are written as JSON strings. The
/// first field must be "Steps". Where a prompt itself holds a line "Negative prompt: ...", an empty negative line
/// follows it, and a negative prompt that does becomes a JSON string: so parse_parameters gives back every text of
/// valid UTF-8.
std::string format_parameters(const GenerationInfo& info);

/// The inverse of format_parameters, also for texts that other programs wrote.
Result<GenerationInfo> parse_parameters(std::string_view text);

}  // namespace sfumato
