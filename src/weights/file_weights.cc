#include "weights/file_weights.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/half.h"
#include "base/strings.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;

/// The names under which a component's weights may stand, best first.
std::vector<std::string> candidates(const std::string& variant) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& before, const std::string& after) {
    for (const char* stem : {"diffusion_pytorch_model", "model"}) names.push_back(stem + before + after);
  };
  if (variant.empty()) {
    add("", ".safetensors.index.json");
    add("", ".safetensors");
  }
  add("", ".safetensors.index.fp16.json");
  add(".fp16", ".safetensors.index.json");
  add(".fp16", ".safetensors");
  return names;
}

std::string listing(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names.empty() ? "nothing" : join(names, ", ");
}

Result<std::vector<fs::path>> read_index(const fs::path& index) {
  std::ifstream in(index);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&](const std::string& what) {
    return input_error(str("[weights.index] \"", index.string(), "\": ", what));
  };
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return bad("expected an object with a \"weight_map\"");
  std::set<std::string> names;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string()) return bad(str("expected a file name for \"", printable(tensor), "\""));
    const std::string name = file.get<std::string>();
    if (name.find('/') != std::string::npos)
      return bad(str("expected a plain file name, got \"", printable(name), "\""));
    names.insert(name);
  }
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    std::error_code failed;
    if (!fs::exists(index.parent_path() / name, failed))
      return bad(str("its shard \"", printable(name), "\" is missing"));
    paths.push_back(index.parent_path() / name);
  }
  return paths;
}

bool serves_as_is(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || !is_float(dtype);
}

}  // namespace

Result<std::vector<fs::path>> find_weight_files(const fs::path& folder, const std::string& variant) {
  for (const std::string& name : candidates(variant)) {
    const fs::path path = folder / name;
    std::error_code failed;
    if (!fs::exists(path, failed)) continue;
    if (path.extension() == ".json") return read_index(path);
    return std::vector<fs::path>{path};
  }
  return input_error(str("[weights.folder] expected safetensors weights", variant.empty() ? "" : " of variant ",
                         variant, " in \"", folder.string(), "\", got ", listing(folder),
                         "; .bin files have to be converted to safetensors first"));
}

Result<std::shared_ptr<const FileWeights>> FileWeights::open(const std::vector<fs::path>& paths) {
  auto out = std::make_shared<FileWeights>();
  for (const fs::path& path : paths) TRY(out->add(TRY(SafetensorsFile::open(path))));
  return std::shared_ptr<const FileWeights>(std::move(out));
}

Result<void> FileWeights::add(std::shared_ptr<const SafetensorsFile> file) {
  const auto fault = [&](const std::string& what) {
    return input_error(str("[weights.file] \"", file->path().string(), "\": ", what));
  };
  for (const std::string& name : file->names()) {
    if (name == "scaled_fp8" || name.ends_with(".scale_weight"))
      return fault(str("expected unscaled weights, got \"", printable(name),
                       "\": scaled 8-bit checkpoints are not supported; use the fp16 version of this model"));
    TensorView view = *file->find(name);
    if (!serves_as_is(view.dtype)) {
      const bool is_f64 = view.dtype == DType::kF64;
      Tensor& wide = converted_.emplace_back(view.shape, is_f64 ? DType::kF32 : DType::kF16);
      for (int64_t i = 0; i < view.shape.elements(); ++i) {
        const double value = element_as_double(view.data, view.dtype, static_cast<size_t>(i));
        const float narrow = static_cast<float>(value);
        if (is_f64 && std::isfinite(value) && !std::isfinite(narrow))
          return fault(str("tensor \"", printable(name), "\" holds ", value, ", which does not fit a float"));
        if (is_f64)
          wide.f32()[static_cast<size_t>(i)] = narrow;
        else
          static_cast<uint16_t*>(wide.data())[i] = f32_to_f16(narrow);
      }
      view = wide.view();
    }
    if (!tensors_.emplace(name, view).second)
      return fault(str("tensor \"", printable(name), "\" is in another shard too"));
  }
  files_.push_back(std::move(file));
  return {};
}

std::optional<TensorView> FileWeights::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? std::nullopt : std::optional(found->second);
}

void FileWeights::release(const TensorView& view) const {
  for (const auto& file : files_) file->release(view);
}

std::vector<std::string> FileWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, view] : tensors_) out.push_back(name);
  return out;
}

std::string FileWeights::identity() const {
  constexpr size_t kBlocks = 64, kBlock = 4096;
  std::string out;
  for (const auto& file : files_) {
    const std::string_view data = file->data();
    out += file->header();
    for (size_t i = 0; i < kBlocks; ++i) out += data.substr(data.size() / kBlocks * i, kBlock);
  }
  return out;
}

}  // namespace sfumato
