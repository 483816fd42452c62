#pragma once
// Where the pictures of a batch are put, under names that depend on the global index alone.
//
//     files       OUT/00012/000123456.png, ten thousand to a folder, and OUT/metadata-*.jsonl, one a shard
//     webdataset  OUT/000123.tar with 000123456.png, 000123456.json for each
//
// A tar is packed when all its pictures are there; until then they are files in OUT/000123.parts/. So a run can stop
// at any time, and what is done is seen by looking.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/shard.h"
#include "base/result.h"
#include "image/image.h"

namespace sfumato {

enum class StoreFormat { kFiles, kWebdataset };

struct StoreOptions {
  std::filesystem::path folder;
  StoreFormat format = StoreFormat::kFiles;
  std::string suffix = ".png";  ///< .png, .jpg or .webp
  size_t tar_pictures = 1000;
};

class Store {
 public:
  /// Makes the folder, and clears away what a killed process left half written of this shard's pictures.
  static Result<Store> open(const StoreOptions& options, const Shard& shard);

  /// Pictures are dealt out one by one, or a tar at a time.
  bool is_ours(size_t index) const;
  bool has(size_t index) const;
  /// Relative to the folder.
  std::filesystem::path name_of(size_t index) const;
  /// The picture and, in a tar, its record beside it.
  Result<void> write(size_t index, const Image& image, const std::string& parameters,
                     const nlohmann::ordered_json& record) const;
  /// The lines of OUT/metadata-00003-of-00016.jsonl.
  Result<void> write_records(const std::string& lines, const Shard& shard) const;
  /// Packs the tar of `index` if all of its pictures, of `total` in the batch, are there.
  Result<void> pack(size_t index, size_t total) const;

 private:
  Store(StoreOptions options, Shard shard) : options_(std::move(options)), shard_(std::move(shard)) {}
  std::filesystem::path file_of(size_t index) const;
  std::filesystem::path tar_of(size_t index) const;
  std::filesystem::path parts_of(size_t index) const;
  Result<void> clear_halves() const;

  StoreOptions options_;
  Shard shard_;
};

}  // namespace sfumato
