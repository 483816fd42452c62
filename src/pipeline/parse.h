#pragma once
// Text to numbers and sizes: the whole text, within a range, or an error that names the option.
#include <string>

#include "base/result.h"
#include "pipeline/request.h"

namespace sfumato {

/// T is int, int64_t or float. Neither spaces nor trailing characters, nor NaN.
template <class T>
Result<T> parse_number(const char* name, const std::string& text, T low, T high);

/// "512x768"
Result<Size> parse_size(const char* name, const std::string& text);

}  // namespace sfumato
