#include "weights/model_folder.h"

#include <openssl/sha.h>

#include <fstream>
#include <iterator>

#include "base/strings.h"
#include "weights/random_weights.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;

Error no_model(const fs::path& path, const std::string& what) {
  return input_error(
      str("[weights.model] expected a model folder in diffusers layout, got \"", path.string(), "\": ", what));
}

std::optional<std::string> read_file(const fs::path& path) {
  std::error_code failed;
  std::ifstream in(path, std::ios::binary);
  if (!in || !fs::is_regular_file(path, failed)) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

Result<ModelFolder> ModelFolder::open(const fs::path& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return no_model(path, "there is no such folder");
  if (!fs::is_directory(path, failed)) {
    return no_model(path, path.extension() == ".safetensors"
                              ? "a single file; single-file checkpoints are not supported yet, use the folder that "
                                "holds model_index.json"
                              : "a file that is no model; was the download complete?");
  }
  ModelFolder folder;
  folder.path_ = path;
  const std::optional<std::string> index = read_file(path / "model_index.json");
  if (!index) return no_model(path, "it has no model_index.json");
  folder.index_ = nlohmann::json::parse(*index, nullptr, /*allow_exceptions=*/false);
  if (!folder.index_.is_object()) return no_model(path, "its model_index.json is not a JSON object");
  return folder;
}

std::string ModelFolder::name() const {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(path_, failed);
  return (failed ? path_ : whole).filename().string();
}

std::vector<std::string> ModelFolder::components() const {
  std::vector<std::string> out;
  for (const char* name : {"text_encoder", "text_encoder_2", "unet", "vae"})
    if (has(name)) out.emplace_back(name);
  return out;
}

std::string ModelFolder::class_name(const std::string& component) const {
  const nlohmann::json entry = index_.value(component, nlohmann::json());
  return entry.is_array() && entry.size() == 2 && entry[1].is_string() ? entry[1].get<std::string>() : "unknown";
}

Result<std::string> ModelFolder::config(const std::string& component) const {
  if (auto text = read_file(path_ / component / "config.json")) return *std::move(text);
  return no_model(path_, str("it has no ", component, "/config.json"));
}

Result<std::string> ModelFolder::scheduler() const {
  if (auto text = read_file(path_ / "scheduler" / "scheduler_config.json")) return *std::move(text);
  return no_model(path_, "it has no scheduler/scheduler_config.json");
}

std::string ModelFolder::text(const std::string& file) const {
  return read_file(path_ / file).value_or("");
}

Result<std::shared_ptr<const WeightSource>> ModelFolder::weights(const std::string& component) const {
  auto& slot = opened_[component];
  const fs::path shapes = path_ / component / "shapes.gz";
  std::error_code failed;
  if (!slot && fs::exists(shapes, failed)) slot = TRY(RandomWeights::open(shapes));
  if (!slot) slot = TRY(FileWeights::open(TRY(find_weight_files(path_ / component))));
  return slot;
}

std::string ModelFolder::hash() const {
  std::string all;
  for (const auto& [component, weights] : opened_)
    if (weights) all += weights->identity();
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(all.data()), all.size(), digest);
  std::string hex;
  for (int i = 0; i < 5; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

}  // namespace sfumato
