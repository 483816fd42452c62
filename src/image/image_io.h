#pragma once
// Reading and writing PNG, JPEG and WebP by their libraries.
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "image/image.h"

namespace sfumato {

struct ReadLimits {
  int64_t max_pixels = 64'000'000;  ///< checked before anything is decoded
};

/// Any of the three formats, told by content. 8 bits a channel: 16-bit and palette pictures are reduced, grey stays one
/// channel, grey with alpha becomes RGBA. A JPEG is turned upright by its EXIF orientation.
Result<Image> read_image(const std::filesystem::path& path, const ReadLimits& limits = {});
Result<Image> decode_image(std::span<const std::byte> bytes, const ReadLimits& limits = {});

enum class ImageFormat { kPng, kJpeg, kWebp };
/// By suffix: .png, .jpg, .jpeg, .webp; anything else is a usage error.
Result<ImageFormat> format_of(const std::filesystem::path& path);

/// `parameters` goes into a PNG's text (tEXt, or iTXt when it is not Latin-1), a JPEG's or WebP's EXIF UserComment;
/// none when empty. `quality` 1..100 is for JPEG and WebP.
Result<std::string> encode_image(const Image& image, ImageFormat format, const std::string& parameters,
                                 int quality = 95);
/// Written under another name and renamed: a reader never sees half a file.
Result<void> write_image(const std::filesystem::path& path, const Image& image, const std::string& parameters);

/// The `parameters` text of a picture; an input error if it has none.
Result<std::string> read_parameters(const std::filesystem::path& path);
Result<std::string> parameters_of(std::span<const std::byte> bytes);

}  // namespace sfumato
