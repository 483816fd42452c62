#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace sfumato::server {

std::string to_base64(std::string_view bytes);
/// Plain base64, or a data: URL with it. `field` is named in the error. Anything else, a URL to fetch above all, is
/// refused: the server fetches nothing.
Result<std::string> from_base64(std::string_view field, std::string_view text);

}  // namespace sfumato::server
