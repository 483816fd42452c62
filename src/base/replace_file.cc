#include "base/replace_file.h"

#include <unistd.h>

#include <fstream>

#include "base/strings.h"

namespace sfumato {

bool replace_file(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path partial = str(path.string(), ".", getpid(), ".part");
  std::ofstream out(partial, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(partial, path, failed);
  if (out && !failed) return true;
  std::filesystem::remove(partial, failed);
  return false;
}

}  // namespace sfumato
