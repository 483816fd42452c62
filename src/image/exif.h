#pragma once
// The two EXIF fields that matter here (CIPA DC-008): orientation and UserComment.
#include <optional>
#include <span>
#include <string>

namespace sfumato {

/// A TIFF block, as WebP's EXIF chunk and (after "Exif\0\0") JPEG's APP1 hold it, with `text` (UTF-8) as UserComment.
std::string make_exif(const std::string& text);

struct Exif {
  int orientation = 1;  ///< 1..8
  std::optional<std::string> comment;
};
/// What can be read; a broken block gives the defaults. An "Exif\0\0" in front is skipped.
Exif parse_exif(std::span<const std::byte> block);

}  // namespace sfumato
