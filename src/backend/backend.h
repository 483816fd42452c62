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
  kF16,   ///< products in half precision, sums in float; PJRT only
};
std::string_view precision_name(Precision precision);

/// What kAuto stands for on this machine's CPU; anything else is returned as it is.
Precision resolve_precision(Precision asked);

struct CompileOptions {
  Precision precision = Precision::kF32;
  bool on_every_device = false;  ///< for run_each(); else for one device
  /// Inputs that seldom change, by name: what depends on them and on weights alone is computed when they do, not on
  /// every run.
  std::vector<std::string> slow_inputs = {};
  bool runs_seldom = false;  ///< memory comes before speed: a CPU prepares large weights on each run and keeps none
};

/// A compiled program. Not for two threads at once.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Inputs in the order of the graph's Input nodes, shapes and dtypes as declared there; outputs in the graph's order.
  virtual Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) = 0;
  /// One run a device, side by side: inputs[i] and the i-th result are device i's. Of programs compiled
  /// on_every_device, as many as there are devices.
  virtual Result<std::vector<std::vector<Tensor>>> run_each(std::span<const std::vector<TensorView>> inputs) {
    std::vector<std::vector<Tensor>> results;
    for (const std::vector<TensorView>& one : inputs) results.push_back(TRY(run(one)));
    return results;
  }
  /// Takes the memory that a run needs, so that what will not fit fails before any work is done.
  virtual Result<void> reserve() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// `weights` supplies the graph's Weight nodes and must outlive the executable (shared: it is kept).
  virtual Result<std::unique_ptr<Executable>> compile(ir::Graph graph, std::shared_ptr<const WeightSource> weights,
                                                      const CompileOptions& options) = 0;
  /// What kAuto stands for here; anything else is returned as it is.
  virtual Precision resolve(Precision asked) const = 0;
  /// Devices that work side by side.
  virtual int devices() const { return 1; }
  /// Compiling is dear, and another batch may round in another way: batches are filled up, so that all are alike.
  virtual bool fills_batches() const { return false; }
  /// Programs compiled so far, those found in a cache included.
  virtual int compiled() const { return 0; }
  /// Of the devices: "TPU v5 lite"; a CPU's devices share its cores.
  virtual std::string device_kind() const = 0;
  virtual bool devices_share_cores() const { return true; }
  /// How long programs have run so far, from their start on devices to their end; the rest of the time is the host's.
  virtual double seconds_on_devices() const { return 0; }
};

/// The CPU backend with `threads` OpenMP threads (0: default_threads()).
std::unique_ptr<Backend> make_cpu_backend(int threads);

struct PjrtOptions {
  std::string plugin;  ///< path of the plugin's library, or a name; empty: found as docs/pjrt.md says
  int devices = 0;     ///< 0: all that the plugin has
};
/// Any accelerator with a PJRT plugin. Errors: no such plugin, one that is too old, fewer devices than asked for; or
/// this build has no PJRT, and what to run to get it.
Result<std::unique_ptr<Backend>> make_pjrt_backend(const PjrtOptions& options);

}  // namespace sfumato
