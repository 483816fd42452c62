#pragma once
// Text as picture files hold it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sfumato {

/// Code points; a byte that is not part of valid UTF-8 becomes U+FFFD.
std::vector<uint32_t> decode_utf8(std::string_view text);
void append_utf8(std::string& out, uint32_t code);

}  // namespace sfumato
