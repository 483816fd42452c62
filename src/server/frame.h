#pragma once
// What the server and its workers say to each other over a socket pair: a JSON header and bytes.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sfumato::server {

struct Frame {
  nlohmann::json header;  ///< an object with a "type"
  std::string blob = {};
};

/// Header and blob with their sizes before them, in this machine's byte order: both ends are one program.
std::string encode_frame(const Frame& frame);

struct FramePrefix {
  static constexpr size_t kBytes = 16;
  uint64_t header_bytes = 0, blob_bytes = 0;
  /// Nothing if the sizes are beyond anything that is sent.
  static std::optional<FramePrefix> decode(const char* bytes);
};

/// Blocking, for the worker's side. False: the other end is gone.
bool read_frame(int fd, Frame& frame);
bool write_frame(int fd, const Frame& frame);

}  // namespace sfumato::server
