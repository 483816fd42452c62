#include "backend/pjrt/compile_cache.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/replace_file.h"
#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

namespace fs = std::filesystem;

std::string sha256(std::initializer_list<std::string_view> parts) {
  // Each part after its length, so that no two lists run into one another.
  std::string all;
  for (const std::string_view part : parts) all.append(str(part.size(), ":")).append(part);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), digest.data());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) hex.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return hex;
}

constexpr size_t kHashSize = 2 * SHA256_DIGEST_LENGTH;

}  // namespace

fs::path CompileCache::default_folder() {
  if (const char* folder = std::getenv("SFUMATO_CACHE_DIR")) return folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "sfumato/pjrt";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache/sfumato/pjrt";
  return {};
}

std::string CompileCache::key(std::string_view text, std::string_view options, std::string_view version) {
  return sha256({text, options, version});
}

std::optional<std::string> CompileCache::find(const std::string& key) const {
  if (folder_.empty()) return {};
  std::ifstream file(path(key), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() <= kHashSize) return {};
  const std::string_view program = std::string_view(bytes).substr(kHashSize);
  if (sha256({key, program}) != std::string_view(bytes).substr(0, kHashSize)) return {};
  std::error_code failed;
  fs::last_write_time(path(key), fs::file_time_type::clock::now(), failed);  // used: among the last to go
  return std::string(program);
}

void CompileCache::store(const std::string& key, std::string_view program) const {
  if (folder_.empty() || program.size() + kHashSize > most_bytes_) return;
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (!replace_file(path(key), sha256({key, program}).append(program))) return;
  shrink();
}

void CompileCache::remove(const std::string& key) const {
  std::error_code failed;
  fs::remove(path(key), failed);
}

void CompileCache::shrink() const {
  struct Entry {
    fs::path path;
    fs::file_time_type used;
    size_t bytes;
  };
  std::vector<Entry> entries;
  size_t total = 0;
  std::error_code failed;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, failed)) {
    if (file.path().extension() != ".bin") continue;
    entries.push_back({file.path(), file.last_write_time(failed), static_cast<size_t>(file.file_size(failed))});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= most_bytes_) break;
    fs::remove(entry.path, failed);
    total -= entry.bytes;
  }
}

}  // namespace sfumato::pjrt
