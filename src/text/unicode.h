#pragma once
// The three classes of code points that CLIP's splitting pattern knows.
#include <cstdint>

namespace sfumato::text {

bool is_letter(int32_t code);  ///< \p{L}
bool is_number(int32_t code);  ///< \p{N}
bool is_space(int32_t code);   ///< \s

}  // namespace sfumato::text
