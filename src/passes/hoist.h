#pragma once
// One graph in two: what seldom changes is computed once and handed to what is computed on every run.
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sfumato::passes {

struct Hoisted {
  ir::Graph once;  ///< no nodes where there is nothing to hoist
  ir::Graph rest;
};

/// `once`: what is computed from `slow_inputs` (names of inputs) and weights alone and is read by the rest; of the
/// U-Net, the keys and values of every attention to the prompt. Both graphs have all inputs of `graph`, in its order;
/// `rest` has one more behind them for every output of `once`, in the same order. Before fusing, which would mix both.
Hoisted hoist(ir::Graph graph, const std::vector<std::string>& slow_inputs);

}  // namespace sfumato::passes
