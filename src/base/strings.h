#pragma once
// The few string helpers that C++20 (gcc 12 has no <format>) leaves out.
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace sfumato {

/// str("a", 1, 2.5) == "a12.5"
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

/// join({"a", "b"}, ", ") == "a, b"
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return std::move(out).str();
}

/// The bytes of a text, or of a file that is held in one.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// For messages: control characters become '?', and more than 100 bytes are cut.
std::string printable(std::string_view text);
std::string lowercase_ascii(std::string_view text);
/// fixed(3.14159, 2) == "3.14"
std::string fixed(double value, int digits);

}  // namespace sfumato
