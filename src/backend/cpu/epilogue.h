#pragma once
#include <cstddef>

namespace sfumato::cpu {

/// The optional inputs of Conv2d and Linear nodes, by position (ir/graph.h).
struct EpilogueInput {
  static constexpr size_t kBias = 2, kRowBias = 3, kResidual = 4;
};

}  // namespace sfumato::cpu
