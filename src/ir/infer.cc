// The shape rule of every op.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ir/graph.h"

namespace sfumato::ir {
namespace {

using Inputs = std::vector<const Node*>;  // null: absent

Error bad(const Op& op, const std::string& expected, const Inputs& inputs) {
  std::vector<std::string> got;
  for (const Node* n : inputs) got.push_back(n ? n->shape.to_string() : "none");
  return runtime_error(str("[ir.", op_name(op), "] expected ", expected, ", got ", join(got, ", ")));
}

bool is_vector(const Node* n, int64_t size) {
  return n == nullptr || n->shape == Shape{size};
}

Shape with_last(Shape shape, int64_t last) {
  shape[-1] = last;
  return shape;
}

// Every rule: (op, inputs) -> shape and dtype. Arity was checked.
struct Rules {
  const Op& self;
  const Inputs& in;

  Error bad(const std::string& expected) const { return ir::bad(self, expected, in); }

  // What an input is when computed with: a weight's 16-bit storage counts as float.
  DType value_dtype(size_t i) const { return is_float(in[i]->dtype) ? DType::kF32 : in[i]->dtype; }

  // The optional inputs 3 (row_bias) and 4 (residual) of Conv2d and Linear.
  Result<Inferred> with_epilogue(Shape out, const Epilogue& epilogue) const {
    const Node *row_bias = in.size() > 3 ? in[3] : nullptr, *residual = in.size() > 4 ? in[4] : nullptr;
    if (row_bias && row_bias->shape != Shape{out[0], out[-1]}) return bad("row_bias [B,Co]");
    if (epilogue.geglu) {
      if (epilogue.activation || out[-1] % 2 != 0) return bad("an even number of columns and no activation for geglu");
      out[-1] /= 2;
    }
    if (residual && residual->shape != out) return bad("a residual of the result's shape " + out.to_string());
    return Inferred{out};
  }

  // Leaves carry their own shape: the builder sets it.
  Result<Inferred> operator()(const Input&) const { return bad("to be a leaf"); }
  Result<Inferred> operator()(const Weight&) const { return bad("to be a leaf"); }

  Result<Inferred> operator()(const Conv2d& conv) const {
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    if (x.rank() != 4 || w.rank() != 4 || x[3] != w[1] || !is_vector(in[2], w[0]) || conv.stride < 1)
      return bad("x [B,H,W,Ci], weight [Co,Ci,kh,kw], bias [Co]");
    const int64_t factor = conv.upsample2x ? 2 : 1;
    const int64_t height = factor * x[1] + conv.pad_top + conv.pad_bottom - w[2];
    const int64_t width = factor * x[2] + conv.pad_left + conv.pad_right - w[3];
    if (height < 0 || width < 0) return bad("an image at least as large as the kernel");
    return with_epilogue({x[0], height / conv.stride + 1, width / conv.stride + 1, w[0]}, conv.epilogue);
  }
  Result<Inferred> operator()(const Linear& linear) const {
    const Shape &x = in[0]->shape, &w = in[1]->shape;
    const bool is_matrix = w.rank() == 2 || (w.rank() == 4 && w[2] == 1 && w[3] == 1);  // a 1x1 convolution's
    if (x.rank() < 1 || !is_matrix || x[-1] != w[1] || !is_vector(in[2], w[0]))
      return bad("x [...,K], weight [N,K], bias [N]");
    return with_epilogue(with_last(x, w[0]), linear.epilogue);
  }
  Result<Inferred> operator()(const Attention& a) const {
    const Shape &q = in[0]->shape, &k = in[1]->shape, &v = in[2]->shape;
    if (q.rank() != 3 || k.rank() != 3 || k != v || q[0] != k[0] || q[2] != k[2] || a.heads < 1 || q[2] % a.heads != 0)
      return bad(str("q [B,S,C], k and v [B,T,C], C divisible by ", a.heads, " heads"));
    if (a.causal && q[1] != k[1]) return bad("as many keys as queries for causal attention");
    return Inferred{q};
  }
  Result<Inferred> operator()(const GroupNorm& g) const {
    const Shape& x = in[0]->shape;
    if (x.rank() < 2 || g.groups < 1 || x[-1] % g.groups != 0 || !is_vector(in[1], x[-1]) || !is_vector(in[2], x[-1]))
      return bad(str("x [B,...,C], gamma [C], beta [C], C divisible by ", g.groups));
    return Inferred{x};
  }
  Result<Inferred> operator()(const LayerNorm&) const {
    const Shape& x = in[0]->shape;
    if (x.rank() < 1 || !is_vector(in[1], x[-1]) || !is_vector(in[2], x[-1]))
      return bad("x [...,C], gamma [C], beta [C]");
    return Inferred{x};
  }
  Result<Inferred> operator()(const Unary&) const { return Inferred{in[0]->shape}; }
  Result<Inferred> operator()(const Scale&) const { return Inferred{in[0]->shape}; }
  Result<Inferred> operator()(const Binary&) const {
    const Shape &a = in[0]->shape, &b = in[1]->shape;
    bool ok = a.rank() == b.rank();
    for (int i = 0; ok && i < a.rank(); ++i) ok = b[i] == a[i] || b[i] == 1;
    return ok ? Result<Inferred>(Inferred{a}) : bad("equal ranks, b's extents equal to a's or 1");
  }
  Result<Inferred> operator()(const Geglu&) const {
    const Shape& x = in[0]->shape;
    if (x.rank() < 1 || x[-1] % 2 != 0) return bad("x [...,2C]");
    return Inferred{with_last(x, x[-1] / 2)};
  }
  Result<Inferred> operator()(const UpsampleNearest& up) const {
    const Shape& x = in[0]->shape;
    if (x.rank() != 4 || up.height < 1 || up.width < 1) return bad("x [B,H,W,C] and a target size");
    return Inferred{{x[0], up.height, up.width, x[3]}};
  }
  Result<Inferred> operator()(const Concat&) const {
    Shape out = in[0]->shape;
    for (size_t i = 1; i < in.size(); ++i) {
      const Shape& part = in[i]->shape;
      if (part.rank() != out.rank() || with_last(part, 1) != with_last(out, 1))
        return bad("parts equal but for channels");
      out[-1] += part[-1];
    }
    return Inferred{out, value_dtype(0)};
  }
  Result<Inferred> operator()(const Slice& s) const {
    Shape out = in[0]->shape;
    if (s.axis < 0 || s.axis >= out.rank() || s.begin < 0 || s.end <= s.begin || s.end > out[s.axis])
      return bad(str("a range within axis ", s.axis));
    out[s.axis] = s.end - s.begin;
    return Inferred{out, value_dtype(0)};
  }
  Result<Inferred> operator()(const Reshape& r) const {
    if (r.shape.elements() != in[0]->shape.elements()) return bad("as many elements as " + r.shape.to_string());
    return Inferred{r.shape, value_dtype(0)};
  }
  Result<Inferred> operator()(const Embedding&) const {
    const Shape &ids = in[0]->shape, &table = in[1]->shape;
    if (ids.rank() != 2 || table.rank() != 2 || in[0]->dtype != DType::kI32) return bad("ids [B,S] I32, table [V,C]");
    return Inferred{{ids[0], ids[1], table[1]}, DType::kF32};
  }
  Result<Inferred> operator()(const GatherRow&) const {
    const Shape &x = in[0]->shape, &index = in[1]->shape;
    if (x.rank() != 3 || index != Shape{x[0]} || in[1]->dtype != DType::kI32) return bad("x [B,S,C], index [B] I32");
    return Inferred{{x[0], x[2]}};
  }
  Result<Inferred> operator()(const TimestepEmbedding& t) const {
    if (t.dim < 2 || t.dim % 2 != 0) return bad("an even dim");
    std::vector<int64_t> dims = in[0]->shape.dims();
    dims.push_back(t.dim);
    return Inferred{Shape(std::move(dims))};
  }
};

struct OpRow {
  std::string_view name;
  int min_inputs, max_inputs;
};
// In the order of the variant's alternatives.
constexpr std::array<OpRow, std::variant_size_v<Op>> kOps = {{
    {"input", 0, 0},
    {"weight", 0, 0},
    {"conv2d", 3, 5},
    {"linear", 3, 5},
    {"attention", 3, 3},
    {"group_norm", 3, 3},
    {"layer_norm", 3, 3},
    {"unary", 1, 1},
    {"binary", 2, 2},
    {"scale", 1, 1},
    {"geglu", 1, 1},
    {"upsample_nearest", 1, 1},
    {"concat", 1, 1 << 20},
    {"slice", 1, 1},
    {"reshape", 1, 1},
    {"embedding", 2, 2},
    {"gather_row", 2, 2},
    {"timestep_embedding", 1, 1},
}};

// Bias, row bias and residual of conv2d and linear.
bool may_be_absent(const Op& op, size_t input) {
  return input >= 2 && (std::holds_alternative<Conv2d>(op) || std::holds_alternative<Linear>(op));
}

}  // namespace

std::string_view op_name(const Op& op) {
  return kOps[op.index()].name;
}

Result<Inferred> infer(const Graph& graph, const Op& op, const std::vector<Value>& inputs) {
  const OpRow& row = kOps[op.index()];
  Inputs nodes;
  for (const Value v : inputs) nodes.push_back(v ? &graph[v] : nullptr);
  const int n = static_cast<int>(inputs.size());
  if (n < row.min_inputs || n > row.max_inputs) return bad(op, str(row.min_inputs, " inputs"), nodes);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!nodes[i] && !may_be_absent(op, i)) return bad(op, str("input ", i, " to be present"), nodes);
  return std::visit(Rules{op, nodes}, op);
}

}  // namespace sfumato::ir
