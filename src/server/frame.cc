#include "server/frame.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sfumato::server {
namespace {

constexpr uint64_t kMaxHeader = uint64_t{64} << 20, kMaxBlob = uint64_t{1} << 31;

bool read_exactly(int fd, char* at, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  const std::string header = frame.header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const uint64_t sizes[] = {header.size(), frame.blob.size()};
  std::string out(reinterpret_cast<const char*>(sizes), sizeof sizes);
  out.reserve(out.size() + header.size() + frame.blob.size());
  return out.append(header).append(frame.blob);
}

std::optional<FramePrefix> FramePrefix::decode(const char* bytes) {
  FramePrefix prefix;
  std::memcpy(&prefix.header_bytes, bytes, sizeof prefix.header_bytes);
  std::memcpy(&prefix.blob_bytes, bytes + sizeof prefix.header_bytes, sizeof prefix.blob_bytes);
  if (prefix.header_bytes > kMaxHeader || prefix.blob_bytes > kMaxBlob) return std::nullopt;
  return prefix;
}

bool read_frame(int fd, Frame& frame) {
  char bytes[FramePrefix::kBytes];
  if (!read_exactly(fd, bytes, sizeof bytes)) return false;
  const std::optional<FramePrefix> prefix = FramePrefix::decode(bytes);
  if (!prefix) return false;
  std::string header(prefix->header_bytes, '\0');
  frame.blob.resize(prefix->blob_bytes);
  if (!read_exactly(fd, header.data(), header.size()) || !read_exactly(fd, frame.blob.data(), frame.blob.size()))
    return false;
  frame.header = nlohmann::json::parse(header, nullptr, /*allow_exceptions=*/false);
  return frame.header.is_object();
}

bool write_frame(int fd, const Frame& frame) {
  const std::string bytes = encode_frame(frame);
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t put = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    sent += static_cast<size_t>(put);
  }
  return true;
}

}  // namespace sfumato::server
