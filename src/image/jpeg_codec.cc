#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>  // needs <cstdio> before it

#include <jerror.h>

#include "base/strings.h"
#include "image/codecs.h"
#include "image/exif.h"

namespace sfumato {
namespace {

constexpr unsigned kExifMarker = JPEG_APP0 + 1;

/// libjpeg's errors leave by longjmp, over plain C data only.
struct Errors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX] = "";

  Errors() {
    jpeg_std_error(&manager);
    manager.error_exit = [](j_common_ptr info) {
      auto* self = reinterpret_cast<Errors*>(info->err);
      info->err->format_message(info, self->message);
      std::longjmp(self->back, 1);
    };
    manager.output_message = [](j_common_ptr) {};
    manager.emit_message = [](j_common_ptr info, int) {  // other oddities do no harm
      const int code = info->err->msg_code;
      if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) ++info->err->num_warnings;
    };
  }
};

struct Decoder {
  Errors errors;
  jpeg_decompress_struct info = {};
  Decoder() {
    info.err = &errors.manager;
    jpeg_create_decompress(&info);
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }

  bool read_header(Bytes bytes) {
    if (setjmp(errors.back)) return false;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_save_markers(&info, kExifMarker, 0xffff);
    jpeg_read_header(&info, TRUE);
    return true;
  }
  bool read_pixels(Image& image) {
    if (setjmp(errors.back)) return false;
    if (info.out_color_space != JCS_GRAYSCALE) info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = image.at(0, static_cast<int>(info.output_scanline));
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    return true;
  }
  Exif exif() const {
    for (jpeg_saved_marker_ptr m = info.marker_list; m; m = m->next)
      if (m->marker == kExifMarker && m->data_length > 6 && std::memcmp(m->data, "Exif", 4) == 0)
        return parse_exif(std::as_bytes(std::span(m->data, m->data_length)));
    return {};
  }
};

/// Turns a picture upright: orientations 2..8 of EXIF are mirrorings and quarter turns.
Image upright(const Image& image, int orientation) {
  if (orientation == 1) return image;
  const bool swapped = orientation >= 5;
  Image out(swapped ? image.height : image.width, swapped ? image.width : image.height, image.channels);
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      int u = swapped ? y : x, v = swapped ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) u = image.width - 1 - u;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) v = image.height - 1 - v;
      std::memcpy(out.at(x, y), image.at(u, v), static_cast<size_t>(image.channels));
    }
  return out;
}

struct Encoder {
  Errors errors;
  jpeg_compress_struct info = {};
  unsigned char* data = nullptr;
  unsigned long size = 0;
  Encoder() {
    info.err = &errors.manager;
    jpeg_create_compress(&info);
  }
  ~Encoder() {
    jpeg_destroy_compress(&info);
    std::free(data);
  }
  bool run(const Image& image, const std::string& exif, int quality) {
    if (setjmp(errors.back)) return false;
    jpeg_mem_dest(&info, &data, &size);
    info.image_width = static_cast<JDIMENSION>(image.width);
    info.image_height = static_cast<JDIMENSION>(image.height);
    info.input_components = image.channels;
    info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    if (!exif.empty())
      jpeg_write_marker(&info, kExifMarker, reinterpret_cast<const JOCTET*>(exif.data()),
                        static_cast<unsigned>(exif.size()));
    while (info.next_scanline < info.image_height) {
      JSAMPROW row = const_cast<uint8_t*>(image.at(0, static_cast<int>(info.next_scanline)));
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    return true;
  }
};

}  // namespace

Result<Image> decode_jpeg(Bytes bytes, const ReadLimits& limits) {
  Decoder decoder;
  if (!decoder.read_header(bytes)) return broken_image(str("JPEG: ", decoder.errors.message));
  if (decoder.info.num_components > 3) return broken_image("JPEG: expected grey or colour, got CMYK");
  TRY(check_pixels(decoder.info.image_width, decoder.info.image_height, limits));
  Image image(static_cast<int>(decoder.info.image_width), static_cast<int>(decoder.info.image_height),
              decoder.info.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3);
  const int orientation = decoder.exif().orientation;  // libjpeg forgets the markers once it has finished
  if (!decoder.read_pixels(image)) return broken_image(str("JPEG: ", decoder.errors.message));
  if (decoder.errors.manager.num_warnings > 0) return broken_image("JPEG: the file is damaged or cut off");
  return upright(image, orientation);
}

Result<std::string> encode_jpeg(const Image& image, const std::string& parameters, int quality) {
  constexpr size_t kLongest = 65000;  // a marker's length has 16 bits
  std::string exif = parameters.empty() ? "" : std::string("Exif\0\0", 6) + make_exif(parameters);
  if (exif.size() > kLongest)
    return usage_error("[image.jpeg] the prompt is too long for a JPEG's EXIF; write a PNG instead");
  Encoder encoder;
  if (!encoder.run(image, exif, quality)) return runtime_error(str("[image.jpeg] ", encoder.errors.message));
  return std::string(reinterpret_cast<const char*>(encoder.data), encoder.size);
}

std::optional<std::string> jpeg_parameters(Bytes bytes) {
  Decoder decoder;
  if (!decoder.read_header(bytes)) return std::nullopt;
  return decoder.exif().comment;
}

}  // namespace sfumato
