#include "image/image_io.h"

#include <unistd.h>

#include <fstream>

#include "base/mapped_file.h"
#include "base/replace_file.h"
#include "base/strings.h"
#include "image/codecs.h"
#include "image/convert.h"

namespace sfumato {
namespace {

std::optional<ImageFormat> sniff(Bytes bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 12));
  if (start.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (start.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (start.starts_with("RIFF") && start.size() == 12 && start.substr(8) == "WEBP") return ImageFormat::kWebp;
  return std::nullopt;
}

Error with_path(Error error, const std::filesystem::path& path) {
  error.message += str(" (\"", path.string(), "\")");
  return error;
}

}  // namespace

Error broken_image(const std::string& what) {
  return input_error("[image.read] " + what);
}

Result<void> check_pixels(int64_t width, int64_t height, const ReadLimits& limits) {
  if (width > 0 && height > 0 && width <= limits.max_pixels / height) return {};
  return broken_image(str("expected a picture of at most ", limits.max_pixels, " pixels, got ", width, "x", height));
}

Result<Image> decode_image(std::span<const std::byte> bytes, const ReadLimits& limits) {
  const std::optional<ImageFormat> format = sniff(bytes);
  if (!format) return broken_image("expected a PNG, JPEG or WebP picture, got something else");
  switch (*format) {
    case ImageFormat::kPng:
      return decode_png(bytes, limits);
    case ImageFormat::kJpeg:
      return decode_jpeg(bytes, limits);
    case ImageFormat::kWebp:
      return decode_webp(bytes, limits);
  }
  CHECK(false);
}

Result<Image> read_image(const std::filesystem::path& path, const ReadLimits& limits) {
  const auto file = TRY(MappedFile::open(path));
  Result<Image> image = decode_image(file->bytes(), limits);
  if (!image) return with_path(image.error(), path);
  return image;
}

Result<ImageFormat> format_of(const std::filesystem::path& path) {
  const std::string suffix = lowercase_ascii(path.extension().string());
  if (suffix == ".png") return ImageFormat::kPng;
  if (suffix == ".jpg" || suffix == ".jpeg") return ImageFormat::kJpeg;
  if (suffix == ".webp") return ImageFormat::kWebp;
  return usage_error(
      str("[image.write] expected a name that ends in .png, .jpg or .webp, got \"", path.string(), "\""));
}

Result<std::string> encode_image(const Image& image, ImageFormat format, const std::string& parameters, int quality) {
  switch (format) {
    case ImageFormat::kPng:
      return encode_png(image, parameters);
    case ImageFormat::kJpeg:
      return encode_jpeg(to_rgb(image), parameters, quality);
    case ImageFormat::kWebp:
      return encode_webp(image.channels == 1 ? to_rgb(image) : image, parameters, quality);
  }
  CHECK(false);
}

Result<void> write_image(const std::filesystem::path& path, const Image& image, const std::string& parameters) {
  const std::string bytes = TRY(encode_image(image, TRY(format_of(path)), parameters));
  if (replace_file(path, bytes)) return {};
  return runtime_error(
      str("[image.write] cannot write \"", path.string(), "\"; is the folder there, with room in it?"));
}

Result<std::string> parameters_of(std::span<const std::byte> bytes) {
  const std::optional<ImageFormat> format = sniff(bytes);
  if (!format) return broken_image("expected a PNG, JPEG or WebP picture, got something else");
  const std::optional<std::string> text = *format == ImageFormat::kPng    ? png_parameters(bytes)
                                          : *format == ImageFormat::kJpeg ? jpeg_parameters(bytes)
                                                                          : webp_parameters(bytes);
  if (!text) return broken_image("the picture holds no generation parameters");
  return *text;
}

Result<std::string> read_parameters(const std::filesystem::path& path) {
  const auto file = TRY(MappedFile::open(path));
  Result<std::string> text = parameters_of(file->bytes());
  if (!text) return with_path(text.error(), path);
  return text;
}

}  // namespace sfumato
