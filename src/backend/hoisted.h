#pragma once
// What was computed from inputs that seldom change, and when it must be computed anew.
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/tensor.h"

namespace sfumato {

/// The slow inputs of the last run. Programs are fast and inputs small: they are compared byte by byte.
class SlowInputs {
 public:
  SlowInputs(const ir::Graph& graph, const std::vector<std::string>& names) {
    size_t i = 0;
    for (const ir::Value v : graph.inputs()) {
      for (const std::string& name : names)
        if (std::get<ir::Input>(graph[v].op).name == name) indexes_.push_back(i);
      ++i;
    }
  }

  bool equal(std::span<const TensorView> inputs) const {
    if (last_.empty()) return false;
    for (size_t i = 0; i < indexes_.size(); ++i)
      if (std::memcmp(last_[i].data(), inputs[indexes_[i]].data, last_[i].bytes()) != 0) return false;
    return true;
  }
  void remember(std::span<const TensorView> inputs) {
    last_.clear();
    for (const size_t i : indexes_) {
      Tensor& copy = last_.emplace_back(inputs[i].shape, inputs[i].dtype);
      std::memcpy(copy.data(), inputs[i].data, copy.bytes());
    }
  }
  void forget() { last_.clear(); }

 private:
  std::vector<size_t> indexes_;
  std::vector<Tensor> last_;
};

}  // namespace sfumato
