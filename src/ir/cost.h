#pragma once
#include <cstdint>

#include "ir/graph.h"

namespace sfumato::ir {

/// Multiply-adds of the graph's convolutions, products and attentions, done the direct way; what else a network does is
/// a few per cent. Twice this is the FLOPs that benchmarks divide by.
int64_t multiply_adds(const Graph& graph);

}  // namespace sfumato::ir
