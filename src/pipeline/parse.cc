#include "pipeline/parse.h"

#include <charconv>

#include "base/strings.h"

namespace sfumato {

template <class T>
Result<T> parse_number(const char* name, const std::string& text, T low, T high) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stopped, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc() && stopped == end && value >= low && value <= high) return value;
  return usage_error(str("[options] ", name, " expected a number from ", low, " to ", high, ", got \"", text, "\""));
}
template Result<int> parse_number(const char*, const std::string&, int, int);
template Result<int64_t> parse_number(const char*, const std::string&, int64_t, int64_t);
template Result<float> parse_number(const char*, const std::string&, float, float);

Result<Size> parse_size(const char* name, const std::string& text) {
  const size_t x = text.find_first_of("xX");
  if (x != std::string::npos) {
    const Result<int> width = parse_number<int>(name, text.substr(0, x), 1, 1 << 20);
    const Result<int> height = parse_number<int>(name, text.substr(x + 1), 1, 1 << 20);
    if (width && height) return Size{*width, *height};
  }
  return usage_error(str("[options] ", name, " expected WIDTHxHEIGHT as in 512x768, got \"", text, "\""));
}

}  // namespace sfumato
