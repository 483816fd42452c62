#include "weights/save.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace sfumato {

Result<void> save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t at = 0;
  for (const NamedTensor& t : tensors) {
    header[t.name] = {{"dtype", dtype_name(t.view.dtype)},
                      {"shape", t.view.shape.dims()},
                      {"data_offsets", {at, at + t.view.bytes()}}};
    at += t.view.bytes();
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << text;
  for (const NamedTensor& t : tensors)
    out.write(static_cast<const char*>(t.view.data), static_cast<std::streamsize>(t.view.bytes()));
  out.close();
  if (!out) return runtime_error(str("[weights.save] cannot write \"", path.string(), "\""));
  return {};
}

}  // namespace sfumato
