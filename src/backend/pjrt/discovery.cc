#include "backend/pjrt/discovery.h"

#include <cstdlib>
#include <filesystem>

#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Result<std::string> find_plugin(const std::string& given) {
  constexpr const char* kNames = "PJRT_NAMES_AND_LIBRARY_PATHS";
  if (given.find('/') != std::string::npos || given.ends_with(".so")) return given;
  if (given.empty())
    if (const std::string path = environment("PJRT_PLUGIN_LIBRARY_PATH"); !path.empty()) return path;
  std::vector<std::string> known;
  for (const std::string& entry : split(environment(kNames), ',')) {
    const size_t colon = entry.find(':');
    if (colon == std::string::npos) continue;
    known.push_back(entry.substr(0, colon));
    if (given.empty() || given == known.back()) return entry.substr(colon + 1);
  }
  if (!given.empty())
    return usage_error(str("[backend.pjrt] --plugin \"", printable(given), "\" is no path, and ", kNames, " knows ",
                           known.empty() ? "no names" : join(known, ", "), "; give the path of the plugin's .so"));
  if (const std::string path = environment("TPU_LIBRARY_PATH"); !path.empty()) return path;
  std::error_code failed;
  if (std::filesystem::exists(SFUMATO_PJRT_CPU_PLUGIN, failed)) return std::string(SFUMATO_PJRT_CPU_PLUGIN);
  return usage_error(
      "[backend.pjrt] no plugin: give one with --plugin PATH or PJRT_PLUGIN_LIBRARY_PATH, or fetch the CPU plugin with "
      "tools/install_pjrt.py");
}

}  // namespace sfumato::pjrt
