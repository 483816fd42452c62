#include "base/strings.h"

#include <algorithm>
#include <iomanip>

namespace sfumato {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 100;
  size_t length = std::min(text.size(), kLongest);
  while (length < text.size() && length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
    --length;  // not within a character of UTF-8
  std::string out(text.substr(0, length));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return length < text.size() ? out + "..." : out;
}

std::string lowercase_ascii(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string fixed(double value, int digits) {
  return str(std::fixed, std::setprecision(digits), value);
}

}  // namespace sfumato
