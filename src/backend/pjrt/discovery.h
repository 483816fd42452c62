#pragma once
#include <string>

#include "base/result.h"

namespace sfumato::pjrt {

/// The plugin's path: `given` if it is one; else what PJRT_NAMES_AND_LIBRARY_PATHS ("name:path,name:path") says about
/// that name. Nothing given: PJRT_PLUGIN_LIBRARY_PATH, the first of PJRT_NAMES_AND_LIBRARY_PATHS, TPU_LIBRARY_PATH, or
/// the CPU plugin that tools/install_pjrt.py fetched.
Result<std::string> find_plugin(const std::string& given);

}  // namespace sfumato::pjrt
