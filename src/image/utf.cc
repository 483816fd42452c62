#include "image/utf.h"

namespace sfumato {

std::vector<uint32_t> decode_utf8(std::string_view text) {
  constexpr uint32_t kReplacement = 0xfffd;
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by length: smaller ones are overlong
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t length = first < 0x80   ? 1
                          : first < 0xc0 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf8 ? 4
                                         : 0;
    uint32_t code = length <= 1 ? first : first & (0x7fu >> length);
    bool ok = length > 0 && i + length <= text.size();
    for (size_t k = 1; ok && k < length; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      ok = (byte & 0xc0) == 0x80;
      code = code << 6 | (byte & 0x3fu);
    }
    ok = ok && code >= kLeast[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    out.push_back(ok ? code : kReplacement);
    i += ok ? length : 1;
  }
  return out;
}

void append_utf8(std::string& out, uint32_t code) {
  const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
  constexpr uint32_t kMark[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kMark[more] | code >> (6 * more));
  for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80 | (code >> (6 * k) & 0x3f));
}

}  // namespace sfumato
