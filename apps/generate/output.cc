#include "apps/generate/output.h"

#include <unistd.h>

#include <optional>

#include "base/strings.h"
#include "image/image_io.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;

/// "%d" or "%03d" in a name.
struct Placeholder {
  size_t begin = 0, end = 0, digits = 0;
};

Result<std::optional<Placeholder>> find_placeholder(const std::string& pattern) {
  const size_t begin = pattern.find('%');
  if (begin == std::string::npos) return std::optional<Placeholder>();
  const size_t d = pattern.find_first_not_of("0123456789", begin + 1);
  const std::string digits = pattern.substr(begin + 1, d == std::string::npos ? d : d - begin - 1);
  if (d == std::string::npos || pattern[d] != 'd' || digits.size() > 2 || pattern.find('%', d) != std::string::npos)
    return usage_error(str("[cli] --output expected at most one %d or %03d, got \"", pattern, "\""));
  return std::optional<Placeholder>({begin, d + 1, digits.empty() ? 0 : std::stoul(digits)});
}

}  // namespace

Result<void> check_output(const std::string& pattern) {
  TRY(format_of(pattern));
  TRY(find_placeholder(pattern));
  std::error_code failed;
  if (fs::is_directory(pattern, failed))
    return usage_error(str("[cli] --output expected a file, got the folder \"", pattern, "\""));
  return check_folder("--output", pattern);
}

Result<void> check_folder(const char* option, const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code failed;
  if (!fs::is_directory(folder, failed))
    return usage_error(str("[cli] ", option, ": there is no folder \"", folder.string(), "\"; make it first"));
  if (access(folder.c_str(), W_OK) != 0)
    return usage_error(str("[cli] ", option, ": the folder \"", folder.string(), "\" cannot be written to"));
  return {};
}

fs::path output_path(const std::string& pattern, size_t number, size_t count) {
  std::string text = std::to_string(number);
  if (const auto placeholder = find_placeholder(pattern).value()) {
    if (text.size() < placeholder->digits) text.insert(0, placeholder->digits - text.size(), '0');
    return pattern.substr(0, placeholder->begin) + text + pattern.substr(placeholder->end);
  }
  if (count == 1) return pattern;
  const fs::path path(pattern);
  return path.parent_path() / str(path.stem().string(), "-", text, path.extension().string());
}

}  // namespace sfumato
