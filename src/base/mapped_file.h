#pragma once
// A whole file, mapped read-only.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace sfumato {

/// Shared by every view of its bytes. If the file shrinks while mapped, touching the lost pages raises SIGBUS:
/// programs call install_sigbus_message() so that this is a clear line and exit code 3, not a silent death.
class MappedFile {
 public:
  /// Errors: missing, a folder, unreadable.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const { return path_; }
  /// Lets the whole pages of a range leave this process's memory; reading them again brings them back. Ranges outside
  /// the file are ignored.
  void release(const void* begin, size_t bytes) const;

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
};

/// For programs: a read past the end of a truncated or unreadable mapping prints one line and exits with code 3.
void install_sigbus_message();

}  // namespace sfumato
