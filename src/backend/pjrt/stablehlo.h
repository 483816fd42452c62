#pragma once
// ir::Graph -> StableHLO text. Weights are arguments, so that the compiler does not fold them and other weights of the
// same shapes (another checkpoint) give the same program, hence the same entry of the compile cache.
#include <string>
#include <vector>

#include "backend/backend.h"
#include "ir/graph.h"

namespace sfumato::pjrt {

/// How a weight is handed over. The plugin permutes while it copies: a stride a dimension.
enum class WeightLayout {
  kAsStored,
  kMatrix,       ///< [N,K], whether stored as [N,K] or as a 1x1 convolution's [N,K,1,1]
  kConvolution,  ///< [kh,kw,Ci,Co], as hardware wants it; stored [Co,Ci,kh,kw]
};

/// One argument of `main`: an input of the graph, or a weight.
struct Argument {
  int input = -1;      ///< its number among the graph's inputs; -1: a weight
  std::string weight;  ///< its name
  WeightLayout layout = WeightLayout::kAsStored;
  Shape shape;  ///< as the program declares it
  DType dtype = DType::kF32;
  bool hoisted = false;  ///< an input that another program computed
};

struct StableHlo {
  std::string text;
  std::vector<Argument> arguments;
  std::vector<Shape> results;  ///< all F32, but for hoisted ones: these are as values between ops are
};

/// Every op of the IR, fused ones too. `compute` is F32, BF16 or F16: what products read and what passes between ops.
/// Sums of products, norms, softmax and activations are float in any case; inputs and outputs are float.
/// Attention goes by blocks of queries, written out one after the other: all scores at once never exist.
StableHlo to_stablehlo(const ir::Graph& graph, DType compute);
/// `compute` of a precision; not of kAuto.
DType compute_type(Precision precision);

}  // namespace sfumato::pjrt
