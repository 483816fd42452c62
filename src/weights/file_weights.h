#pragma once
// One component's tensors from a diffusers folder: one file or shards, plain or a variant.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace sfumato {

/// Finds the files in `folder`, of which exactly one set is loaded. In this order:
///   STEM.safetensors.index.json, STEM.safetensors, STEM.safetensors.index.fp16.json (or
///   STEM.fp16.safetensors.index.json), STEM.fp16.safetensors
/// for STEM "diffusion_pytorch_model" and "model". Shards may be named STEM-00001-of-00002.fp16.safetensors or
/// STEM.fp16-00001-of-00002.safetensors: the index says. With `variant` "fp16" only the fp16 names count.
/// Errors list the files that are there.
Result<std::vector<std::filesystem::path>> find_weight_files(const std::filesystem::path& folder,
                                                             const std::string& variant = "");

/// Tensors as F32, F16 or BF16, straight from the mapped files. 8-bit floats become F16 and F64 becomes F32, in memory,
/// when opened; F64 values beyond float are an error. Scaled 8-bit checkpoints (`scaled_fp8`, `*.scale_weight`) are
/// refused: taking their weights unscaled would give a wrong picture. Integer tensors are served as they are.
class FileWeights final : public WeightSource {
 public:
  static Result<std::shared_ptr<const FileWeights>> open(const std::vector<std::filesystem::path>& paths);

  std::optional<TensorView> find(const std::string& name) const override;
  std::vector<std::string> names() const override;
  void release(const TensorView& view) const override;
  /// Each file's header, and 64 blocks of 4 KiB spread over its data.
  std::string identity() const override;

 private:
  Result<void> add(std::shared_ptr<const SafetensorsFile> file);

  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::vector<Tensor> converted_;
  std::map<std::string, TensorView> tensors_;
};

}  // namespace sfumato
