#include "base/utf8.h"

#include <utf8proc.h>

namespace sfumato {

std::vector<int32_t> to_code_points(std::string_view utf8) {
  std::vector<int32_t> out;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data());
  for (size_t at = 0; at < utf8.size();) {
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(utf8.size() - at), &code);
    out.push_back(length > 0 ? code : 0xfffd);
    at += length > 0 ? static_cast<size_t>(length) : 1;
  }
  return out;
}

void append_utf8(std::string& out, int32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t length = utf8proc_encode_char(code, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

std::string to_utf8(const std::vector<int32_t>& codes) {
  std::string out;
  for (const int32_t code : codes) append_utf8(out, code);
  return out;
}

}  // namespace sfumato
