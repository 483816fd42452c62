#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <cstring>

#include "image/codecs.h"
#include "image/exif.h"

namespace sfumato {
namespace {

const uint8_t* raw(Bytes bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

}  // namespace

Result<Image> decode_webp(Bytes bytes, const ReadLimits& limits) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(raw(bytes), bytes.size(), &features) != VP8_STATUS_OK) return broken_image("WebP: broken header");
  if (features.has_animation) return broken_image("WebP: expected a still picture, got an animation");
  TRY(check_pixels(features.width, features.height, limits));
  Image image(features.width, features.height, features.has_alpha ? 4 : 3);
  const auto decode = features.has_alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (!decode(raw(bytes), bytes.size(), image.pixels.data(), image.pixels.size(), image.width * image.channels))
    return broken_image("WebP: the file is damaged or cut off");
  return image;
}

Result<std::string> encode_webp(const Image& image, const std::string& parameters, int quality) {
  uint8_t* data = nullptr;
  const auto encode = image.channels == 4 ? WebPEncodeRGBA : WebPEncodeRGB;
  const size_t size = encode(image.pixels.data(), image.width, image.height, image.width * image.channels,
                             static_cast<float>(quality), &data);
  if (size == 0) return runtime_error("[image.webp] libwebp could not encode the picture");
  std::string out(reinterpret_cast<const char*>(data), size);
  WebPFree(data);
  if (parameters.empty()) return out;

  const std::string exif = make_exif(parameters);
  const WebPData picture = {reinterpret_cast<const uint8_t*>(out.data()), out.size()};
  const WebPData chunk = {reinterpret_cast<const uint8_t*>(exif.data()), exif.size()};
  WebPMux* mux = WebPMuxCreate(&picture, 1);
  WebPData assembled = {};
  const bool ok =
      mux && WebPMuxSetChunk(mux, "EXIF", &chunk, 1) == WEBP_MUX_OK && WebPMuxAssemble(mux, &assembled) == WEBP_MUX_OK;
  if (ok) out.assign(reinterpret_cast<const char*>(assembled.bytes), assembled.size);
  WebPDataClear(&assembled);
  WebPMuxDelete(mux);
  if (!ok) return runtime_error("[image.webp] libwebp could not add the parameters");
  return out;
}

std::optional<std::string> webp_parameters(Bytes bytes) {
  const WebPData file = {raw(bytes), bytes.size()};
  WebPMux* mux = WebPMuxCreate(&file, 0);
  WebPData chunk = {};
  std::optional<std::string> text;
  if (mux && WebPMuxGetChunk(mux, "EXIF", &chunk) == WEBP_MUX_OK)
    text = parse_exif(std::as_bytes(std::span(chunk.bytes, chunk.size))).comment;
  WebPMuxDelete(mux);
  return text;
}

}  // namespace sfumato
