#pragma once
// The border between what to compute (ir::Graph) and where: compile once for a static shape, run many times.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "tensor/tensor.h"
#include "weights/weight_source.h"

namespace sfumato {

/// Arithmetic of an executable. Inputs and outputs are float either way.
enum class Precision {
  kAuto,  ///< the fastest within the documented error bound (docs/precision.md)
  kF32,   ///< exact: within 1e-4 of the reference's largest value
  kBF16,  ///< products in bfloat16, sums in float
};
std::string_view precision_name(Precision precision);

/// What kAuto stands for on this machine; anything else is returned as it is.
Precision resolve_precision(Precision asked);

struct CompileOptions {
  Precision precision = Precision::kF32;
};

/// A compiled program. Not for two threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Inputs in the order of the graph's Input nodes, shapes and dtypes as declared there; outputs in the graph's order.
  virtual Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) = 0;
  /// Takes the memory that a run needs, so that what will not fit fails before any work is done.
  virtual Result<void> reserve() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// `weights` supplies the graph's Weight nodes and must outlive the executable (shared: it is kept).
  virtual Result<std::unique_ptr<Executable>> compile(ir::Graph graph, std::shared_ptr<const WeightSource> weights,
                                                      const CompileOptions& options) = 0;
};

/// The CPU backend with `threads` OpenMP threads (0: default_threads()).
std::unique_ptr<Backend> make_cpu_backend(int threads);

}  // namespace sfumato
