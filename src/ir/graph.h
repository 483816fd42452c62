#pragma once
// The one representation of a network: a list of nodes in topological order, each plain data.
//
// Layout rule: images are [batch, height, width, channels], token sequences [batch, tokens, channels]. The channel
// axis is always last, so that flattening an image into tokens is a reshape, a 1x1 convolution is a Linear, and the
// CPU's fast layout is the only one there is. Weights keep the checkpoint's shapes (Linear [out, in], Conv2d
// [out, in, kh, kw]). Latents and pictures at the program's border are given in this layout too.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace sfumato::ir {

/// Index of a node in its graph. -1: no value (an absent bias).
struct Value {
  int id = -1;
  explicit operator bool() const { return id >= 0; }
  bool operator==(const Value&) const = default;
};

// ---- Ops. Inputs in the order given; [] marks optional ones.

struct Input {
  std::string name;
  bool hoisted = false;  ///< an output of another program of the same backend (passes/hoist.h)
};                       ///< bound at run time, in the graph's order of inputs
struct Weight {
  std::string name;
};  ///< bound at compile time to a tensor of the checkpoint

enum class UnaryKind { kSilu, kGelu, kGeluTanh, kQuickGelu, kRelu, kTanh };  ///< kGelu is exact (erf)
enum class BinaryKind { kAdd, kMul };

/// What a Conv2d or Linear does to its sums before storing them; set by passes, empty in freshly built graphs:
/// out = activation(sum + bias + row_bias) + residual, where the optional inputs are present.
struct Epilogue {
  std::optional<UnaryKind> activation = std::nullopt;
  bool geglu = false;  ///< Linear only, instead of `activation`: weight has 2N rows (a; b), out = a * gelu(b)
  bool operator==(const Epilogue&) const = default;
};

/// x [B,H,W,Ci], weight [Co,Ci,kh,kw], [bias [Co]], [row_bias [B,Co]], [residual = out] -> [B,Ho,Wo,Co].
/// Padding is zeros. upsample2x: x is doubled in height and width (nearest) first.
struct Conv2d {
  int stride = 1;
  int pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  bool upsample2x = false;
  Epilogue epilogue = {};
};
/// x [...,K], weight [N,K], [bias [N]], [row_bias: none], [residual = out] -> [...,N]
struct Linear {
  Epilogue epilogue = {};
};
/// q [B,S,heads*D], k and v [B,T,heads*D] -> [B,S,heads*D]: softmax(scale q k^T) v for each head.
/// causal: token i sees tokens 0..i.
struct Attention {
  int heads = 1;
  float scale = 1;
  bool causal = false;
};

/// x [B,...,C], gamma [C], beta [C] -> x's shape. silu: followed by SiLU (set by a pass).
struct GroupNorm {
  int groups = 32;
  float eps = 1e-5f;
  bool silu = false;
};
/// x [...,C], gamma [C], beta [C] -> x's shape
struct LayerNorm {
  float eps = 1e-5f;
};

struct Unary {
  UnaryKind kind = UnaryKind::kSilu;
};
/// a, b -> a's shape; b broadcasts: its extents are a's or 1.
struct Binary {
  BinaryKind kind = BinaryKind::kAdd;
};
/// x * factor
struct Scale {
  float factor = 1;
};
/// x [...,2C] = (a, b) -> a * gelu(b), exact gelu
struct Geglu {};

/// x [B,H,W,C] -> [B,height,width,C]; source index floor(i * in / out)
struct UpsampleNearest {
  int64_t height = 0, width = 0;
};
/// Along the last axis (channels).
struct Concat {};
struct Slice {
  int axis = 0;
  int64_t begin = 0, end = 0;
};
struct Reshape {
  Shape shape;
};

/// ids [B,S] I32, table [V,C] -> [B,S,C]
struct Embedding {};
/// x [B,S,C], index [B] I32 -> [B,C]
struct GatherRow {};
/// t [B...] -> [B...,dim]: cos and sin of t * exp(-ln(max_period) i / (dim/2 - shift)); diffusers'
/// get_timestep_embedding.
struct TimestepEmbedding {
  int64_t dim = 320;
  bool flip_sin_to_cos = true;
  float shift = 0;
  float max_period = 10000;
};

using Op = std::variant<Input, Weight, Conv2d, Linear, Attention, GroupNorm, LayerNorm, Unary, Binary, Scale, Geglu,
                        UpsampleNearest, Concat, Slice, Reshape, Embedding, GatherRow, TimestepEmbedding>;

std::string_view op_name(const Op& op);

struct Node {
  Op op;
  std::vector<Value> inputs;
  Shape shape;
  DType dtype = DType::kF32;  ///< of the value; a Weight's is what the file stores
};

struct Output {
  std::string name;
  Value value;
  bool hoisted = false;  ///< for another program of the same backend alone
};

/// The inputs of Conv2d and Linear, by position; from kBias on they are optional.
struct ProductInput {
  static constexpr size_t kX = 0, kWeight = 1, kBias = 2, kRowBias = 3, kResidual = 4;
};

/// Is input `i` given and not absent?
inline bool has_input(const Node& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i];
}
/// An Input or Weight: nothing computes it.
bool is_leaf(const Node& node);

/// Nodes in topological order: a node's inputs have smaller ids.
struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Output> outputs;

  const Node& operator[](Value v) const { return nodes.at(static_cast<size_t>(v.id)); }
  Node& operator[](Value v) { return nodes.at(static_cast<size_t>(v.id)); }
  /// The Input nodes, in order.
  std::vector<Value> inputs() const;
  /// How often each node is used, by nodes and outputs.
  std::vector<int> use_counts() const;
};

/// The shape and dtype rule of every op, in one place: used by the builder and by verify.
struct Inferred {
  Shape shape;
  DType dtype = DType::kF32;
};
Result<Inferred> infer(const Graph& graph, const Op& op, const std::vector<Value>& inputs);

/// Topological order, arity, shapes and dtypes of every node. A graph that fails this is a bug in a builder or pass.
Result<void> verify(const Graph& graph);

/// One line a node: `%12 = conv2d(%3, %10, %11) {stride=1, pad=1,1,1,1} : F32 1x64x64x320`
std::string to_text(const Graph& graph);

}  // namespace sfumato::ir
