#pragma once
#include <filesystem>
#include <vector>

#include "base/result.h"

namespace sfumato {

/// A tar of these files under their own names, written under another name and renamed. The same files give the same
/// bytes: no times, owners or machine names. By libarchive.
Result<void> write_tar(const std::filesystem::path& tar, const std::vector<std::filesystem::path>& files);

}  // namespace sfumato
