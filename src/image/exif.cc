#include "image/exif.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/utf8.h"

namespace sfumato {
namespace {

constexpr int kOrientation = 0x0112, kExifIfd = 0x8769, kUserComment = 0x9286;
constexpr std::string_view kUnicode("UNICODE\0", 8), kExifMark("Exif\0\0", 6);

void append(std::string& out, uint32_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

std::string to_utf16(const std::string& text) {  // big endian
  std::string out;
  for (const uint32_t code : to_code_points(text)) {
    if (code >= 0x10000) {
      append(out, 0xd800 + ((code - 0x10000) >> 10), 2);
      append(out, 0xdc00 + ((code - 0x10000) & 0x3ff), 2);
    } else {
      append(out, code, 2);
    }
  }
  return out;
}

/// Numbers of a TIFF block; reads beyond its end give zero.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes), big_(byte(0) == 'M') {}
  uint32_t byte(size_t at) const { return at < bytes_.size() ? static_cast<uint32_t>(bytes_[at]) : 0; }
  uint32_t number(size_t at, size_t size) const {
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | byte(big_ ? at + i : at + size - 1 - i);
    return value;
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

/// After eight bytes that name the encoding: UTF-16 in the block's byte order, or bytes.
std::string comment_text(const Reader& r, size_t begin, size_t count) {
  constexpr size_t kMarkSize = 8;
  const size_t end = std::min(r.size(), begin + count);
  std::string mark, out;
  for (size_t i = begin; i < std::min(end, begin + kMarkSize); ++i) mark += static_cast<char>(r.byte(i));
  if (mark != kUnicode) {
    for (size_t i = begin + kMarkSize; i < end; ++i) out += static_cast<char>(r.byte(i));
    return out;
  }
  for (size_t i = begin + kMarkSize; i + 2 <= end; i += 2) {
    uint32_t code = r.number(i, 2);
    const uint32_t low = i + 4 <= end ? r.number(i + 2, 2) : 0;
    if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 2;
    }
    append_utf8(out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);  // half a pair is no character
  }
  return out;
}

}  // namespace

std::string make_exif(const std::string& text) {
  const std::string comment = std::string(kUnicode) + to_utf16(text);
  std::string out = "MM";
  append(out, 42, 2);
  append(out, 8, 4);  // the first directory: one entry, a pointer to the EXIF directory
  append(out, 1, 2);
  append(out, kExifIfd, 2), append(out, 4, 2), append(out, 1, 4), append(out, 26, 4);
  append(out, 0, 4);
  append(out, 1, 2);  // the EXIF directory at 26: one entry, the comment at 44
  append(out, kUserComment, 2), append(out, 7, 2), append(out, static_cast<uint32_t>(comment.size()), 4);
  append(out, 44, 4);
  append(out, 0, 4);
  return out + comment;
}

Exif parse_exif(std::span<const std::byte> block) {
  const std::string_view text(reinterpret_cast<const char*>(block.data()), block.size());
  const Reader r(block.subspan(text.starts_with(kExifMark) ? kExifMark.size() : 0));
  Exif exif;
  if (r.number(2, 2) != 42) return exif;
  size_t directories[2] = {r.number(4, 4), 0};
  for (size_t& directory : directories) {
    if (directory == 0 || directory >= r.size()) break;
    const uint32_t entries = r.number(directory, 2);
    for (uint32_t i = 0; i < entries && directory + 2 + 12 * i < r.size(); ++i) {
      const size_t entry = directory + 2 + 12 * i;
      switch (static_cast<int>(r.number(entry, 2))) {
        case kOrientation:
          exif.orientation = static_cast<int>(r.number(entry + 8, 2));
          break;
        case kExifIfd:
          directories[1] = r.number(entry + 8, 4);
          break;
        case kUserComment:
          exif.comment = comment_text(r, r.number(entry + 8, 4), r.number(entry + 4, 4));
          break;
        default:
          break;
      }
    }
  }
  if (exif.orientation < 1 || exif.orientation > 8) exif.orientation = 1;
  return exif;
}

}  // namespace sfumato
