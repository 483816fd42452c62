#include "apps/batch/store.h"

#include <charconv>
#include <cstdio>

#include "apps/batch/tar.h"
#include "base/replace_file.h"
#include "base/strings.h"
#include "image/image_io.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFolderPictures = 10'000;

std::string padded(size_t number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*zu", digits, number);
  return text;
}

Error cannot_write(const fs::path& path) {
  return runtime_error(str("[batch.store] cannot write \"", path.string(), "\"; is there room, and may you?"));
}

Result<void> make_folder(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed || !fs::is_directory(path, failed)) return cannot_write(path);
  return {};
}

Result<void> write_text(const fs::path& path, const std::string& text) {
  if (!replace_file(path, text)) return cannot_write(path);
  return {};
}

}  // namespace

Result<Store> Store::open(const StoreOptions& options, const Shard& shard) {
  TRY(make_folder(options.folder));
  Store store(options, shard);
  TRY(store.clear_halves());
  return store;
}

bool Store::is_ours(size_t index) const {
  return shard_.has(options_.format == StoreFormat::kFiles ? index : index / options_.tar_pictures);
}

fs::path Store::name_of(size_t index) const {
  const std::string file = padded(index, 9) + options_.suffix;
  return options_.format == StoreFormat::kFiles ? padded(index / kFolderPictures, 5) / fs::path(file) : fs::path(file);
}

fs::path Store::tar_of(size_t index) const {
  return options_.folder / (padded(index / options_.tar_pictures, 6) + ".tar");
}

fs::path Store::parts_of(size_t index) const {
  return options_.folder / (padded(index / options_.tar_pictures, 6) + ".parts");
}

fs::path Store::file_of(size_t index) const {
  return (options_.format == StoreFormat::kFiles ? options_.folder : parts_of(index)) / name_of(index);
}

bool Store::has(size_t index) const {
  std::error_code failed;
  return fs::exists(file_of(index), failed) ||
         (options_.format == StoreFormat::kWebdataset && fs::exists(tar_of(index), failed));
}

Result<void> Store::write(size_t index, const Image& image, const std::string& parameters,
                          const nlohmann::ordered_json& record) const {
  const fs::path file = file_of(index);
  TRY(make_folder(file.parent_path()));
  if (options_.format == StoreFormat::kWebdataset)  // first: the picture says that both are there
    TRY(write_text(fs::path(file).replace_extension(".json"), record.dump() + "\n"));
  return write_image(file, image, parameters);
}

Result<void> Store::write_records(const std::string& lines, const Shard& shard) const {
  if (options_.format != StoreFormat::kFiles) return {};
  return write_text(
      options_.folder / str("metadata-", padded(shard.index, 5), "-of-", padded(shard.count, 5), ".jsonl"), lines);
}

Result<void> Store::pack(size_t index, size_t total) const {
  if (options_.format == StoreFormat::kFiles || fs::exists(tar_of(index))) return {};
  const size_t first = index / options_.tar_pictures * options_.tar_pictures;
  const size_t last = std::min(total, first + options_.tar_pictures);
  std::vector<fs::path> files;
  for (size_t i = first; i < last; ++i) {
    const fs::path file = file_of(i);
    if (!fs::exists(file)) return {};
    files.push_back(file);
    files.push_back(fs::path(file).replace_extension(".json"));
  }
  TRY(write_tar(tar_of(index), files));
  std::error_code failed;
  fs::remove_all(parts_of(index), failed);
  return {};
}

Result<void> Store::clear_halves() const {
  std::error_code failed;
  std::vector<fs::path> halves;
  for (fs::recursive_directory_iterator it(options_.folder, failed), end; !failed && it != end; it.increment(failed)) {
    const std::string name = it->path().filename().string();
    size_t number = 0;
    const auto [stopped, status] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (!name.ends_with(".part") || status != std::errc()) continue;
    const bool is_tar = std::string_view(stopped).starts_with(".tar");
    if (is_tar ? shard_.has(number) : is_ours(number)) halves.push_back(it->path());
  }
  for (const fs::path& half : halves) fs::remove(half, failed);
  return {};
}

}  // namespace sfumato
