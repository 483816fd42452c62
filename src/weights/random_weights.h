#pragma once
// Weights of the right shapes without a checkpoint: for benchmarks and compilation ahead of time.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weights/weight_source.h"

namespace sfumato {

/// Reads a list of tensors, a line each, "name 320x4x3x3", compressed with gzip or not.
Result<std::map<std::string, Shape>> read_shapes(const std::filesystem::path& path);

/// fp16 numbers drawn once from a fixed seed: norms are the identity, biases 0, and the rest has variance 1 / fan-in,
/// so that every layer's output is about as large as its input. What such a model draws is noise.
class RandomWeights final : public WeightSource {
 public:
  static Result<std::shared_ptr<const RandomWeights>> open(const std::filesystem::path& shapes);

  std::optional<TensorView> find(const std::string& name) const override;
  std::vector<std::string> names() const override;
  std::string identity() const override { return "random"; }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace sfumato
