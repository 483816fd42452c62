#pragma once
// A model in diffusers layout: model_index.json and one folder a component.
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weights/file_weights.h"

namespace sfumato {

class ModelFolder {
 public:
  /// Errors say what stands at `path` instead: nothing, a single file, a folder of something else. Never a substitute.
  static Result<ModelFolder> open(const std::filesystem::path& path);

  const nlohmann::json& index() const { return index_; }  ///< model_index.json, an object
  std::string name() const;                               ///< the folder's own name
  std::vector<std::string> components() const;            ///< those with weights: "text_encoder", "unet", "vae", ...
  std::string class_name(const std::string& component) const;
  bool has(const std::string& component) const {
    std::error_code failed;
    return std::filesystem::exists(path_ / component / "config.json", failed);
  }

  Result<std::string> config(const std::string& component) const;  ///< COMPONENT/config.json
  Result<std::string> scheduler() const;                           ///< scheduler/scheduler_config.json
  /// The text of a file of the folder; empty when it is not there.
  std::string text(const std::string& file) const;
  /// Opened once, then shared. Safetensors files, or random numbers where the folder has a list of shapes instead
  /// (COMPONENT/shapes.gz; see models/synthetic).
  Result<std::shared_ptr<const WeightSource>> weights(const std::string& component) const;
  /// Ten hexadecimal digits of a SHA-256 over the identities of all opened weights (WeightSource::identity).
  std::string hash() const;

 private:
  std::filesystem::path path_;
  nlohmann::json index_;
  mutable std::map<std::string, std::shared_ptr<const WeightSource>> opened_;
};

}  // namespace sfumato
