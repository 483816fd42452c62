#pragma once
// Writing tensors, for debugging and tests.
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace sfumato {

struct NamedTensor {
  std::string name;
  TensorView view;
};

/// A safetensors file with the tensors in the order given.
Result<void> save_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace sfumato
