#pragma once
// A compiled graph: a list of steps over one arena.
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/arena.h"
#include "kernels/elementwise/elementwise.h"

namespace sfumato::cpu {

/// Where a value's bytes are while the program runs.
struct Location {
  enum class Kind { kArena, kInput, kFixed };
  Kind kind = Kind::kArena;
  size_t offset = 0;            ///< kArena: bytes from its start; kInput: index of the input
  const void* fixed = nullptr;  ///< kFixed: a weight, in its file's dtype and maybe unaligned
};

/// The addresses of one run.
class Frame {
 public:
  Frame(std::byte* arena, std::byte* scratch, std::span<const TensorView> inputs)
      : arena_(arena), scratch_(scratch), inputs_(inputs) {}
  const void* at(const Location& location) const {
    switch (location.kind) {
      case Location::Kind::kInput:
        return inputs_[location.offset].data;
      case Location::Kind::kFixed:
        return location.fixed;
      case Location::Kind::kArena:
        break;
    }
    return arena_ + location.offset;
  }
  const float* f32(const Location& location) const { return static_cast<const float*>(at(location)); }
  const int32_t* i32(const Location& location) const { return static_cast<const int32_t*>(at(location)); }
  /// Where a step writes its result: always in the arena.
  float* out(const Location& location) const { return reinterpret_cast<float*>(arena_ + location.offset); }
  std::byte* scratch() const { return scratch_; }

 private:
  std::byte *arena_, *scratch_;
  std::span<const TensorView> inputs_;
};

using Step = std::function<void(const Frame&)>;

/// What lowering one node needs to know and may ask for.
struct NodeContext {
  const ir::Graph& graph;
  const ir::Node& node;
  const std::vector<Location>& locations;  ///< one a value
  Location out;
  Precision precision;
  bool saves_memory = false;  ///< 16-bit weights stay as they are and are widened on each run
  bool keeps_none = false;    ///< even such as would not grow
  size_t scratch_bytes = 0;   ///< to be set: working memory of this step, shared by all steps
  /// Memory that lives as long as the program, for prepared weights; null when there is none to be had.
  std::function<std::byte*(size_t bytes)> keep;
  /// Says that a weight was copied into kept memory.
  std::function<void(const ir::Node& weight)> release;

  const ir::Node& input(size_t i) const { return graph[node.inputs[i]]; }
  bool has(size_t i) const { return ir::has_input(node, i); }
  const Location& at(size_t i) const { return locations[static_cast<size_t>(node.inputs[i].id)]; }
};

/// The kernels' name for an activation.
kernels::UnaryOp unary_op(ir::UnaryKind kind);

/// The step that computes `context.node`. Nodes without one (leaves, reshapes) do not come here.
Result<Step> lower(NodeContext& context);

}  // namespace sfumato::cpu
