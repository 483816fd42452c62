#include "backend/pjrt/ahead_of_time.h"

#include <chrono>
#include <cstdlib>

#include "backend/pjrt/plugin/plugin.h"
#include "backend/pjrt/stablehlo.h"
#include "base/strings.h"
#include "passes/passes.h"

namespace sfumato::pjrt {
namespace {

class Compiler final : public AheadOfTime {
 public:
  explicit Compiler(std::shared_ptr<const Plugin> plugin) : plugin_(std::move(plugin)) {}

  Result<void> open(const std::string& topology) {
    auto create = PJRT_ARGS(TopologyDescription_Create);
    create.topology_name = topology.data();
    create.topology_name_size = topology.size();
    TRY(PJRT_CALL(*plugin_, TopologyDescription_Create, create));
    topology_ = TopologyHandle(create.topology, {plugin_});
    auto list = PJRT_ARGS(TopologyDescription_GetDeviceDescriptions);
    list.topology = topology_.get();
    TRY(PJRT_CALL(*plugin_, TopologyDescription_GetDeviceDescriptions, list));
    devices_ = static_cast<int>(list.num_descriptions);
    if (devices_ == 0) return runtime_error(str("[backend.pjrt] topology \"", topology, "\" has no devices"));
    auto kind = PJRT_ARGS(DeviceDescription_Kind);
    kind.device_description = const_cast<PJRT_DeviceDescription*>(list.descriptions[0]);
    TRY(PJRT_CALL(*plugin_, DeviceDescription_Kind, kind));
    kind_.assign(kind.device_kind, kind.device_kind_size);
    return {};
  }

  std::string device_kind() const override { return kind_; }
  int devices() const override { return devices_; }

  Result<ProgramCost> compile(ir::Graph graph, Precision precision, int replicas) override {
    passes::run_all(graph);
    return compile(to_stablehlo(graph, compute_type(precision)).text,
                   compile_options(replicas, graph, kind_.starts_with("TPU")));
  }

  Result<ProgramCost> compile(const std::string& stablehlo, int replicas) override {
    return compile(stablehlo, compile_options(replicas));
  }

 private:
  Result<ProgramCost> compile(const std::string& stablehlo, const std::string& options) const {
    const PJRT_Program program = program_of(stablehlo);
    auto args = PJRT_ARGS(Compile);
    args.topology = topology_.get();
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    const auto begin = std::chrono::steady_clock::now();
    TRY(PJRT_CALL(*plugin_, Compile, args));
    const ExecutableHandle executable(args.executable, {plugin_});
    ProgramCost cost = TRY(cost_of(executable.get()));
    cost.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return cost;
  }

  Result<ProgramCost> cost_of(PJRT_Executable* executable) const {
    ProgramCost cost;
    auto memory = PJRT_ARGS(Executable_GetCompiledMemoryStats);
    memory.executable = executable;
    TRY(PJRT_CALL(*plugin_, Executable_GetCompiledMemoryStats, memory));
    cost.argument_bytes = memory.argument_size_in_bytes;
    cost.output_bytes = memory.output_size_in_bytes;
    cost.temp_bytes = memory.temp_size_in_bytes;
    cost.peak_bytes = memory.peak_memory_in_bytes;
    cost.code_bytes = memory.generated_code_size_in_bytes;
    auto analysis = PJRT_ARGS(Executable_GetCostAnalysis);
    analysis.executable = executable;
    TRY(PJRT_CALL(*plugin_, Executable_GetCostAnalysis, analysis));
    for (size_t i = 0; i < analysis.num_properties; ++i) {
      const PJRT_NamedValue& property = analysis.properties[i];
      const std::string_view name(property.name, property.name_size);
      if (property.type != PJRT_NamedValue_kFloat) continue;
      if (name == "flops") cost.flops = property.float_value;
      if (name == "bytes accessed") cost.bytes_accessed = property.float_value;
    }
    return cost;
  }

  std::shared_ptr<const Plugin> plugin_;
  TopologyHandle topology_;
  std::string kind_;
  int devices_ = 0;
};

}  // namespace

Result<std::unique_ptr<AheadOfTime>> AheadOfTime::open(const std::string& plugin, const std::string& topology) {
  setenv("TPU_SKIP_MDS_QUERY", "1", 0);          // else libtpu asks the cloud's metadata server where it runs
  setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);  // no TPU is touched: others may use it, or compile too
  auto compiler = std::make_unique<Compiler>(TRY(Plugin::open(plugin)));
  TRY(compiler->open(topology));
  return std::unique_ptr<AheadOfTime>(std::move(compiler));
}

}  // namespace sfumato::pjrt
