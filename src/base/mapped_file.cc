#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/strings.h"

namespace sfumato {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  const auto failed = [&](const char* why) {
    return input_error(str("[base.mapped_file] cannot read \"", path.string(), "\": ", why));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return failed("not a regular file");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ > 0) {
    void* data = mmap(nullptr, file->size_, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
      file->size_ = 0;
      const int why = errno;
      ::close(fd);
      return failed(std::strerror(why));
    }
    file->data_ = static_cast<const std::byte*>(data);
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(const void* begin, size_t bytes) const {
  constexpr uintptr_t kPage = 4096;
  const auto first = reinterpret_cast<uintptr_t>(begin), base = reinterpret_cast<uintptr_t>(data_);
  if (first < base || bytes > size_ || first - base > size_ - bytes) return;
  const uintptr_t from = (first + kPage - 1) / kPage * kPage, to = (first + bytes) / kPage * kPage;
  // The mapping is shared and read-only, so the pages stay in the file's cache.
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

void install_sigbus_message() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    constexpr char kMessage[] =
        "sfumato: [base.mapped_file] a model file was truncated or became unreadable while in use\n";
    if (write(2, kMessage, sizeof kMessage - 1) < 0) _exit(static_cast<int>(ErrorKind::kRuntime));
    _exit(static_cast<int>(ErrorKind::kBadInput));
  };
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace sfumato
