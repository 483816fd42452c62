#pragma once
#include <filesystem>
#include <string_view>

namespace sfumato {

/// Writes the file under another name ("NAME.PID.part") and renames it: a reader never sees half of it. False: it could
/// not be written, and nothing is left of it.
bool replace_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace sfumato
