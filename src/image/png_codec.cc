#include <png.h>
#include <zlib.h>

#include <cstring>

#include "base/strings.h"
#include "base/utf8.h"
#include "image/codecs.h"

namespace sfumato {
namespace {

constexpr char kKeyword[] = "parameters";

/// Reads from memory and remembers libpng's complaint; errors leave by longjmp, over plain C data only.
struct Source {
  Bytes bytes;
  size_t at = 0;
  char message[128] = "";
};

void on_error(png_structp png, png_const_charp message) {
  std::strncpy(static_cast<Source*>(png_get_error_ptr(png))->message, message, sizeof(Source::message) - 1);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->bytes.size() - source->at) png_error(png, "the file ends early");
  std::memcpy(out, source->bytes.data() + source->at, count);
  source->at += count;
}

void append_bytes(png_structp png, png_bytep data, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), count);
}

/// Up to 8 bits a channel, no palette; returns the number of channels.
int simplify(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_scale_16(png);
  if (png_get_interlace_type(png, info) != PNG_INTERLACE_NONE) png_set_interlace_handling(png);
  const int type = png_get_color_type(png, info);
  const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(png, info, PNG_INFO_tRNS);
  if (!(type & PNG_COLOR_MASK_COLOR) && has_alpha) png_set_gray_to_rgb(png);
  png_read_update_info(png, info);
  return png_get_channels(png, info);
}

struct Header {
  png_uint_32 width = 0, height = 0;
  int channels = 0;
};

/// Opens, and reads up to the pixels. False: source.message says why.
bool read_header(png_structp png, png_infop info, Source& source, Header& header) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &source, read_bytes);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_read_info(png, info);
  header.width = png_get_image_width(png, info);
  header.height = png_get_image_height(png, info);
  return true;
}
bool read_pixels(png_structp png, png_infop info, Header& header, Image& image, std::vector<png_bytep>& rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  header.channels = simplify(png, info);
  image = Image(static_cast<int>(header.width), static_cast<int>(header.height), header.channels);
  for (int y = 0; y < image.height; ++y) rows.push_back(image.at(0, y));
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  return true;
}

bool write_all(png_structp png, png_infop info, const Image& image, png_text* text) {
  if (setjmp(png_jmpbuf(png))) return false;
  constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, 0, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8,
               kTypes[image.channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (text) png_set_text(png, info, text, 1);
  png_write_info(png, info);
  for (int y = 0; y < image.height; ++y) png_write_row(png, image.at(0, y));
  png_write_end(png, info);
  return true;
}

/// UTF-8 whose characters are all in Latin-1, as Latin-1; nothing otherwise.
std::optional<std::string> to_latin1(const std::string& text) {
  std::string out;
  for (const uint32_t code : to_code_points(text)) {
    if (code > 0xff) return std::nullopt;
    out += static_cast<char>(code);
  }
  return out;
}

std::string from_latin1(const std::string& text) {
  std::string out;
  for (const char c : text) append_utf8(out, static_cast<uint8_t>(c));
  return out;
}

}  // namespace

Result<Image> decode_png(Bytes bytes, const ReadLimits& limits) {
  Source source{bytes};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) return broken_image("libpng is out of memory");
  Header header;
  Image image;
  std::vector<png_bytep> rows;
  Result<void> within;
  const bool ok = read_header(png, info, source, header) &&
                  (within = check_pixels(header.width, header.height, limits)) &&
                  read_pixels(png, info, header, image, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!within) return within.error();
  if (!ok) return broken_image(str("PNG: ", source.message));
  return image;
}

Result<std::string> encode_png(const Image& image, const std::string& parameters) {
  std::string out;
  Source errors;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  if (!info) return broken_image("libpng is out of memory");
  png_set_write_fn(png, &out, append_bytes, nullptr);
  const std::optional<std::string> latin1 = to_latin1(parameters);
  std::string keyword = kKeyword, value = latin1 ? *latin1 : to_utf8(to_code_points(parameters));
  png_text text = {};
  text.compression = latin1 ? PNG_TEXT_COMPRESSION_NONE : PNG_ITXT_COMPRESSION_NONE;
  text.key = keyword.data();
  text.text = value.data();
  text.text_length = latin1 ? value.size() : 0;
  text.itxt_length = latin1 ? 0 : value.size();
  const bool ok = write_all(png, info, image, parameters.empty() ? nullptr : &text);
  png_destroy_write_struct(&png, &info);
  if (!ok) return runtime_error(str("[image.png] ", errors.message));
  return out;
}

std::optional<std::string> png_parameters(Bytes bytes) {
  // Walk the chunks: libpng would want to decode the pixels to reach a text behind them.
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view key(kKeyword, sizeof kKeyword);  // with its terminator
  for (size_t at = 8; at + 12 <= file.size();) {
    const auto length = png_get_uint_32(reinterpret_cast<png_const_bytep>(file.data()) + at);
    if (length > file.size() - at - 12) return std::nullopt;
    const std::string_view type = file.substr(at + 4, 4), data = file.substr(at + 8, length);
    if (type == "tEXt" && data.starts_with(key)) return from_latin1(std::string(data.substr(key.size())));
    if (type == "iTXt" && data.starts_with(key) && data.size() > key.size() + 2) {
      // keyword 0, compression flag, method, language 0, translated keyword 0, text
      const bool compressed = data[key.size()] != 0;
      const size_t language = data.find('\0', key.size() + 2);
      const size_t translated = language == std::string_view::npos ? language : data.find('\0', language + 1);
      if (compressed || translated == std::string_view::npos) return std::nullopt;
      return std::string(data.substr(translated + 1));
    }
    at += 12 + length;
  }
  return std::nullopt;
}

}  // namespace sfumato
