#pragma once
// Compiled programs on disk: a file each, named after what it was made from.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sfumato::pjrt {

class CompileCache {
 public:
  /// An empty folder switches the cache off. Nothing here fails: a cache that cannot be used is an empty one.
  explicit CompileCache(std::filesystem::path folder, size_t most_bytes = size_t{2} << 30)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// $SFUMATO_CACHE_DIR ("" switches the cache off), else sfumato/pjrt in $XDG_CACHE_HOME or ~/.cache.
  static std::filesystem::path default_folder();

  /// Of a program: everything that decides its machine code.
  static std::string key(std::string_view text, std::string_view options, std::string_view version);

  /// What store() was given; nothing when it is absent or its checksum is wrong.
  std::optional<std::string> find(const std::string& key) const;
  /// Afterwards the oldest entries go until all take at most most_bytes.
  void store(const std::string& key, std::string_view program) const;
  void remove(const std::string& key) const;

 private:
  std::filesystem::path path(const std::string& key) const { return folder_ / (key + ".bin"); }
  void shrink() const;

  std::filesystem::path folder_;
  size_t most_bytes_;
};

}  // namespace sfumato::pjrt
