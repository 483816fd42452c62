#pragma once
// Compiling for hardware that is not there: the plugin knows it by name, and says what the program would take.
#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "ir/graph.h"

namespace sfumato::pjrt {

/// What the compiler says about a program on one device. Its cost analysis counts a loop's body once (the programs here
/// have no loops) and does not tell on-chip from off-chip bytes.
struct ProgramCost {
  double flops = 0, bytes_accessed = 0;
  int64_t argument_bytes = 0, output_bytes = 0, temp_bytes = 0, peak_bytes = 0, code_bytes = 0;
  double compile_seconds = 0;
};

class AheadOfTime {
 public:
  /// `topology` as the plugin names it: "v5e:2x2". Errors: no plugin, or one that does not know the topology.
  static Result<std::unique_ptr<AheadOfTime>> open(const std::string& plugin, const std::string& topology);
  virtual ~AheadOfTime() = default;

  virtual std::string device_kind() const = 0;  ///< "TPU v5 lite"
  virtual int devices() const = 0;
  /// Compiles for `replicas` devices.
  virtual Result<ProgramCost> compile(ir::Graph graph, Precision precision, int replicas) = 0;
  /// The same for a program of another's making, in StableHLO text.
  virtual Result<ProgramCost> compile(const std::string& stablehlo, int replicas) = 0;
};

}  // namespace sfumato::pjrt
