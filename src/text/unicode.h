#pragma once
// Code points and the three classes that CLIP's splitting pattern knows.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sfumato::text {

/// Every byte that is not part of valid UTF-8 becomes U+FFFD.
std::vector<int32_t> to_code_points(std::string_view utf8);
void append_utf8(std::string& out, int32_t code);
std::string to_utf8(const std::vector<int32_t>& codes);

bool is_letter(int32_t code);  ///< \p{L}
bool is_number(int32_t code);  ///< \p{N}
bool is_space(int32_t code);   ///< \s

}  // namespace sfumato::text
