#pragma once
// One pair of functions a format; image_io.h chooses among them.
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "image/image.h"
#include "image/image_io.h"

namespace sfumato {

using Bytes = std::span<const std::byte>;

Error broken_image(const std::string& what);
/// Sizes are positive and their product is within the limits.
Result<void> check_pixels(int64_t width, int64_t height, const ReadLimits& limits);

Result<Image> decode_png(Bytes bytes, const ReadLimits& limits);
Result<std::string> encode_png(const Image& image, const std::string& parameters);
std::optional<std::string> png_parameters(Bytes bytes);

Result<Image> decode_jpeg(Bytes bytes, const ReadLimits& limits);
Result<std::string> encode_jpeg(const Image& image, const std::string& parameters, int quality);
std::optional<std::string> jpeg_parameters(Bytes bytes);

Result<Image> decode_webp(Bytes bytes, const ReadLimits& limits);
Result<std::string> encode_webp(const Image& image, const std::string& parameters, int quality);
std::optional<std::string> webp_parameters(Bytes bytes);

}  // namespace sfumato
