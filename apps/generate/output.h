#pragma once
// Where pictures are written.
#include <filesystem>
#include <string>

#include "base/result.h"

namespace sfumato {

/// Everything about `--output` and `--latents-out` that can be known before the work: suffix, pattern, folder.
Result<void> check_output(const std::string& pattern);
Result<void> check_folder(const char* option, const std::filesystem::path& file);

/// The file of picture `number` (from 1) of `count`: "%03d" is filled in; without a pattern several pictures are
/// "out-1.png", "out-2.png", ...
std::filesystem::path output_path(const std::string& pattern, size_t number, size_t count);

}  // namespace sfumato
