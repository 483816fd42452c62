#pragma once
// multipart/form-data (RFC 7578), whole and in memory.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sfumato::server {

struct FormPart {
  std::string name;
  std::string filename;  ///< empty: not a file
  std::string_view body;
};

/// The parts of `body`, which they point into. `content_type` has the boundary.
Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body);

}  // namespace sfumato::server
