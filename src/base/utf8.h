#pragma once
// Between UTF-8 and code points, by utf8proc.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sfumato {

/// Every byte that is not part of valid UTF-8 becomes U+FFFD.
std::vector<int32_t> to_code_points(std::string_view utf8);
/// `code` is a valid code point and no surrogate.
void append_utf8(std::string& out, int32_t code);
std::string to_utf8(const std::vector<int32_t>& codes);

}  // namespace sfumato
