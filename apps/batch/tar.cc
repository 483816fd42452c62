#include "apps/batch/tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "base/mapped_file.h"
#include "base/strings.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using Archive = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

bool add(archive* out, const fs::path& path, std::span<const std::byte> bytes) {
  const Entry entry(archive_entry_new(), archive_entry_free);
  archive_entry_set_pathname(entry.get(), path.filename().c_str());
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  return archive_write_header(out, entry.get()) == ARCHIVE_OK &&
         archive_write_data(out, bytes.data(), bytes.size()) == static_cast<la_ssize_t>(bytes.size());
}

}  // namespace

Result<void> write_tar(const fs::path& tar, const std::vector<fs::path>& files) {
  const fs::path partial = tar.string() + ".part";
  const Archive out(archive_write_new(), archive_write_free);
  bool good = archive_write_set_format_ustar(out.get()) == ARCHIVE_OK &&
              archive_write_open_filename(out.get(), partial.c_str()) == ARCHIVE_OK;
  for (size_t i = 0; good && i < files.size(); ++i) {
    const auto file = TRY(MappedFile::open(files[i]));
    good = add(out.get(), files[i], file->bytes());
  }
  good = archive_write_close(out.get()) == ARCHIVE_OK && good;
  std::error_code failed;
  if (good) fs::rename(partial, tar, failed);
  if (good && !failed) return {};
  const char* why = archive_error_string(out.get());
  const std::string reason = why ? why : failed.message();
  fs::remove(partial, failed);
  return runtime_error(str("[batch.tar] cannot write \"", tar.string(), "\": ", reason));
}

}  // namespace sfumato
