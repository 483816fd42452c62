// Compiles a graph for the CPU: passes, places for every value, one step a node; and runs it.
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "backend/backend.h"
#include "backend/cpu/onednn.h"
#include "backend/cpu/program.h"
#include "backend/hoisted.h"
#include "base/cpu.h"
#include "base/strings.h"
#include "passes/hoist.h"
#include "passes/passes.h"

namespace sfumato {

std::string_view precision_name(Precision precision) {
  constexpr std::string_view kNames[] = {"auto", "fp32", "bf16", "fp16"};
  return kNames[static_cast<int>(precision)];
}

Precision resolve_precision(Precision asked) {
  if (asked != Precision::kAuto) return asked;
  return cpu::onednn_bf16_pays() ? Precision::kBF16 : Precision::kF32;
}

namespace cpu {
namespace {

// Which weights kernels read as float: all but those that are multiplied or looked up, which stay in the file's type.
std::vector<bool> read_as_float(const ir::Graph& graph) {
  std::vector<bool> out(graph.nodes.size());
  for (const ir::Node& node : graph.nodes) {
    const bool has_raw_weight = std::holds_alternative<ir::Conv2d>(node.op) ||
                                std::holds_alternative<ir::Linear>(node.op) ||
                                std::holds_alternative<ir::Embedding>(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] && !(has_raw_weight && i == 1)) out[static_cast<size_t>(node.inputs[i].id)] = true;
  }
  return out;
}

// Programs whose 16-bit weights would take more than this as floats keep them in 16 bits and widen them layer by layer
// on each run: a few per cent slower, and half the memory.
constexpr size_t kWidenedAtMost = size_t{512} << 20;

// A reshape, or a slice of the outermost axis: the same bytes under another shape.
bool is_alias(const ir::Node& node) {
  if (std::holds_alternative<ir::Reshape>(node.op)) return true;
  const auto* slice = std::get_if<ir::Slice>(&node.op);
  return slice && slice->axis == 0;
}

class Program final : public Executable {
 public:
  Program(ir::Graph graph, std::shared_ptr<const WeightSource> weights, std::shared_ptr<Arena> arena, int threads)
      : graph_(std::move(graph)), weights_(std::move(weights)), arena_(std::move(arena)), threads_(threads) {}

  enum class Runs { kOften, kSeldom };

  Result<void> compile(Precision precision, Runs runs) {
    locations_.resize(graph_.nodes.size());
    TRY(place_leaves());
    place_values();
    size_t scratch = 0;
    const bool saves_memory = widened_bytes() > kWidenedAtMost;
    keeps_none_ = runs == Runs::kSeldom && saves_memory;
    omp_set_num_threads(threads_);
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_.nodes[id];
      if (is_leaf(node) || is_alias(node)) continue;
      NodeContext context{graph_,
                          node,
                          locations_,
                          locations_[id],
                          precision,
                          saves_memory,
                          keeps_none_,
                          0,
                          [this](size_t bytes) { return keep(bytes); },
                          [this](const ir::Node& weight) { release(weight); }};
      steps_.push_back(TRY(lower(context)));
      scratch = std::max(scratch, context.scratch_bytes);
    }
    scratch_offset_ = round_up(arena_bytes_);
    arena_bytes_ = scratch_offset_ + scratch;
    return {};
  }

  Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) override {
    TRY(check_inputs(inputs));
    TRY(reserve());
    std::byte* arena = arena_->data();
    omp_set_num_threads(threads_);
    const Frame frame(arena, arena + scratch_offset_, inputs);
    for (const Step& step : steps_) step(frame);
    std::vector<Tensor> outputs;
    for (const ir::Output& output : graph_.outputs) {
      const ir::Node& node = graph_[output.value];
      Tensor tensor(node.shape, node.dtype);
      std::memcpy(tensor.data(), frame.at(locations_[static_cast<size_t>(output.value.id)]), tensor.bytes());
      outputs.push_back(std::move(tensor));
    }
    if (keeps_none_) release_all();
    return outputs;
  }

  Result<void> reserve() override {
    if (!arena_->reserve(arena_bytes_)) return out_of_memory(arena_bytes_);
    return {};
  }

  Result<void> check_inputs(std::span<const TensorView> inputs) const {
    const std::vector<ir::Value> expected = graph_.inputs();
    if (inputs.size() != expected.size())
      return runtime_error(
          str("[backend.cpu] ", graph_.name, " expected ", expected.size(), " inputs, got ", inputs.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      const ir::Node& node = graph_[expected[i]];
      if (inputs[i].shape != node.shape || inputs[i].dtype != node.dtype)
        return runtime_error(str("[backend.cpu] ", graph_.name, " input ", std::get<ir::Input>(node.op).name,
                                 " expected ", node.shape.to_string(), ", got ", inputs[i].shape.to_string()));
    }
    return {};
  }

 private:
  static Error out_of_memory(size_t bytes) {
    return {ErrorKind::kOutOfMemory,
            str("[backend.cpu] out of memory: ", bytes >> 20, " MiB more are needed; try a smaller size or batch")};
  }

  std::byte* keep(size_t bytes) {
    kept_.push_back(aligned_array<std::byte>(bytes));
    return kept_.back().get();
  }

  void release(const ir::Node& weight) const {
    if (const auto view = weights_->find(std::get<ir::Weight>(weight.op).name)) weights_->release(*view);
  }

  void release_all() const {
    for (const ir::Node& node : graph_.nodes)
      if (std::holds_alternative<ir::Weight>(node.op)) release(node);
  }

  /// What the 16-bit weights would take as floats.
  size_t widened_bytes() const {
    size_t bytes = 0;
    for (const ir::Node& node : graph_.nodes)
      if (std::holds_alternative<ir::Weight>(node.op) && dtype_size(node.dtype) == 2)
        bytes += static_cast<size_t>(node.shape.elements()) * sizeof(float);
    return bytes;
  }

  Result<void> place_leaves() {
    const std::vector<bool> as_float = read_as_float(graph_);
    size_t inputs = 0;
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const ir::Node& node = graph_.nodes[id];
      if (std::holds_alternative<ir::Input>(node.op)) locations_[id] = {Location::Kind::kInput, inputs++, nullptr};
      const auto* weight = std::get_if<ir::Weight>(&node.op);
      if (!weight) continue;
      const std::optional<TensorView> found = weights_->find(weight->name);
      if (!found || found->shape.elements() != node.shape.elements() || found->dtype != node.dtype)
        return runtime_error(str("[backend.cpu] weight ", weight->name, " is not what the graph was built for"));
      const void* data = found->data;
      if (as_float[id]) {
        std::byte* copy = keep(static_cast<size_t>(node.shape.elements()) * sizeof(float));
        if (!copy) return out_of_memory(static_cast<size_t>(node.shape.elements()) * sizeof(float));
        convert_to_f32(data, found->dtype, static_cast<size_t>(node.shape.elements()), reinterpret_cast<float*>(copy));
        data = copy;
      }
      locations_[id] = {Location::Kind::kFixed, 0, data};
    }
    return {};
  }

  // Every computed value gets its place in the arena; an alias shares its source's.
  void place_values() {
    const int count = static_cast<int>(graph_.nodes.size());
    std::vector<int> root(graph_.nodes.size());
    std::vector<Lifetime> lives;
    std::vector<int> owner;  // of each lifetime: the node
    std::vector<int> life_of(graph_.nodes.size(), -1);
    for (int id = 0; id < count; ++id) {
      const ir::Node& node = graph_.nodes[static_cast<size_t>(id)];
      const auto at = static_cast<size_t>(id);
      root[at] = is_alias(node) ? root[static_cast<size_t>(node.inputs[0].id)] : id;
      for (const ir::Value v : node.inputs)
        if (v) touch(lives, life_of, root[static_cast<size_t>(v.id)], id);
      if (root[at] != id || is_leaf(node)) continue;
      life_of[at] = static_cast<int>(lives.size());
      lives.push_back({static_cast<size_t>(node.shape.elements()) * dtype_size(node.dtype), id, id});
      owner.push_back(id);
    }
    for (const ir::Output& output : graph_.outputs)
      touch(lives, life_of, root[static_cast<size_t>(output.value.id)], count);
    const ArenaPlan plan = plan_arena(lives);
    arena_bytes_ = plan.bytes;
    for (size_t i = 0; i < lives.size(); ++i)
      locations_[static_cast<size_t>(owner[i])] = {Location::Kind::kArena, plan.offsets[i], nullptr};
    for (size_t id = 0; id < graph_.nodes.size(); ++id)
      if (is_alias(graph_.nodes[id])) locations_[id] = alias_location(graph_.nodes[id]);
  }

  static void touch(std::vector<Lifetime>& lives, const std::vector<int>& life_of, int node, int at) {
    const int life = life_of[static_cast<size_t>(node)];
    if (life >= 0) lives[static_cast<size_t>(life)].last = at;
  }

  Location alias_location(const ir::Node& node) const {
    Location location = locations_[static_cast<size_t>(node.inputs[0].id)];
    const auto* slice = std::get_if<ir::Slice>(&node.op);
    if (!slice) return location;
    const ir::Node& source = graph_[node.inputs[0]];
    CHECK(location.kind == Location::Kind::kArena, "a slice of an input or weight");
    location.offset +=
        static_cast<size_t>(slice->begin * source.shape.elements() / source.shape[0]) * dtype_size(source.dtype);
    return location;
  }

  ir::Graph graph_;
  std::shared_ptr<const WeightSource> weights_;
  std::shared_ptr<Arena> arena_;
  int threads_;
  std::vector<Location> locations_;
  std::vector<Step> steps_;
  std::vector<AlignedPtr<std::byte>> kept_;
  size_t arena_bytes_ = 0, scratch_offset_ = 0;
  bool keeps_none_ = false;
};

/// Two programs: the first runs only when the inputs that it depends on have changed.
class HoistedProgram final : public Executable {
 public:
  HoistedProgram(std::unique_ptr<Program> once, std::unique_ptr<Program> rest, SlowInputs slow_inputs)
      : once_(std::move(once)), rest_(std::move(rest)), slow_inputs_(std::move(slow_inputs)) {}

  Result<std::vector<Tensor>> run(std::span<const TensorView> inputs) override {
    TRY(once_->check_inputs(inputs));
    if (!slow_inputs_.equal(inputs)) {
      slow_inputs_.forget();
      hoisted_ = TRY(once_->run(inputs));
      slow_inputs_.remember(inputs);
    }
    std::vector<TensorView> all(inputs.begin(), inputs.end());
    for (const Tensor& value : hoisted_) all.push_back(value.view());
    return rest_->run(all);
  }
  Result<void> reserve() override {
    TRY(once_->reserve());
    return rest_->reserve();
  }

 private:
  std::unique_ptr<Program> once_, rest_;
  SlowInputs slow_inputs_;
  std::vector<Tensor> hoisted_;
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : threads_(threads > 0 ? threads : default_threads()) {}

  Result<std::unique_ptr<Executable>> compile(ir::Graph graph, std::shared_ptr<const WeightSource> weights,
                                              const CompileOptions& options) override {
    if (options.precision == Precision::kF16)
      return usage_error("[backend.cpu] fp16 is for --backend pjrt only; use fp32 or bf16");
    SlowInputs slow_inputs(graph, options.slow_inputs);
    auto [once, rest] = passes::hoist(std::move(graph), options.slow_inputs);
    const Program::Runs runs = options.runs_seldom ? Program::Runs::kSeldom : Program::Runs::kOften;
    auto program = TRY(compile(std::move(rest), weights, options.precision, runs));
    if (once.nodes.empty()) return std::unique_ptr<Executable>(std::move(program));
    auto first = TRY(compile(std::move(once), weights, options.precision, Program::Runs::kSeldom));
    return std::unique_ptr<Executable>(
        std::make_unique<HoistedProgram>(std::move(first), std::move(program), std::move(slow_inputs)));
  }
  std::string device_kind() const override { return cpu_model_name(); }
  Precision resolve(Precision asked) const override { return resolve_precision(asked); }

 private:
  Result<std::unique_ptr<Program>> compile(ir::Graph graph, std::shared_ptr<const WeightSource> weights,
                                           Precision precision, Program::Runs runs) {
    passes::run_all(graph);
    auto program = std::make_unique<Program>(std::move(graph), std::move(weights), arena_, threads_);
    TRY(program->compile(precision, runs));
    return program;
  }

  int threads_;
  std::shared_ptr<Arena> arena_ = std::make_shared<Arena>();
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<cpu::CpuBackend>(threads);
}

}  // namespace sfumato
