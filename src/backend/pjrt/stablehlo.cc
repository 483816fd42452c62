#include "backend/pjrt/stablehlo.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "backend/pjrt/stablehlo_writer.h"
#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

using ir::ProductInput;

/// Scores of a block of queries take at most this, as floats. 512 queries of 4096 for two samples of ten heads.
constexpr int64_t kScoreBytes = int64_t{192} << 20;

std::vector<int> axes_from(int begin, int end) {
  std::vector<int> axes;
  for (int i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

class Lowering {
 public:
  Lowering(const ir::Graph& graph, DType compute)
      : graph_(graph), compute_(compute), write_(compute == DType::kF32), values_(graph.nodes.size()) {}

  StableHlo run() {
    int inputs = 0;
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      node_ = &graph_.nodes[id];
      if (const auto* input = std::get_if<ir::Input>(&node_->op)) {
        const DType dtype = input->hoisted ? compute_ : node_->dtype;
        values_[id] = write_.argument(node_->shape, dtype);
        out_.arguments.push_back({inputs++, input->name, WeightLayout::kAsStored, node_->shape, dtype, input->hoisted});
      } else if (!ir::is_leaf(*node_)) {
        values_[id] = std::visit(*this, node_->op);
        CHECK(values_[id].shape == node_->shape, ir::op_name(node_->op));
      }
    }
    std::vector<Hlo> results;
    for (const ir::Output& output : graph_.outputs) {
      results.push_back(write_.convert(value(output.value), output.hoisted ? compute_ : DType::kF32));
      out_.results.push_back(results.back().shape);
    }
    out_.text = write_.module(results);
    return std::move(out_);
  }

  // ---- One function an op: the current node's value.

  Hlo operator()(const ir::Input&) { CHECK(false); }
  Hlo operator()(const ir::Weight&) { CHECK(false); }

  Hlo operator()(const ir::Conv2d& conv) {
    const Hlo x = narrow(input(ProductInput::kX));
    Hlo weight = this->weight(node_->inputs[ProductInput::kWeight], WeightLayout::kConvolution);
    StableHloWriter::Convolution window{conv.stride,   conv.pad_top,   conv.pad_bottom,
                                        conv.pad_left, conv.pad_right, /*dilation=*/1};
    if (conv.upsample2x) {
      weight = doubled(weight);
      window = {conv.stride,       conv.pad_top + 1,   conv.pad_bottom + 1,
                conv.pad_left + 1, conv.pad_right + 1, /*dilation=*/2};
    }
    return finish_product(write_.convolution(x, weight, window), conv.epilogue);
  }

  Hlo operator()(const ir::Linear& linear) {
    const Hlo x = narrow(input(ProductInput::kX));
    const Hlo weight = this->weight(node_->inputs[ProductInput::kWeight], WeightLayout::kMatrix);
    return finish_product(write_.dot(x, weight, {{}, {}, {x.shape.rank() - 1}, {1}}, compute_), linear.epilogue);
  }

  Hlo operator()(const ir::Attention& attention) {
    const Hlo q = heads_of(narrow(write_.scale(widen(input(0)), attention.scale)), attention.heads),
              k = heads_of(input(1), attention.heads), v = heads_of(input(2), attention.heads);
    const Hlo ones = narrow(write_.splat(1, {v.shape[0], v.shape[1], v.shape[2], 1}));
    const Hlo values_and_ones = write_.concatenate({v, ones}, 3);
    const int64_t queries = q.shape[1], row_bytes = q.shape[0] * q.shape[2] * k.shape[1] * 4;
    const auto rows =
        static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max(kScoreBytes / row_bytes, int64_t{1}))));
    std::vector<Hlo> blocks;
    for (int64_t at = 0; at < queries; at += rows) {
      const int64_t end = std::min(queries, at + rows);
      blocks.push_back(attend(write_.slice(q, 1, at, end), k, values_and_ones, attention.causal, at));
    }
    return write_.reshape(write_.concatenate(blocks, 1), node_->shape);
  }

  Hlo operator()(const ir::GroupNorm& norm) {
    const Hlo x = widen(input(0));
    const int rank = x.shape.rank();
    const std::vector<int> space = axes_from(1, rank - 1);
    const int64_t batch = x.shape[0], channels = x.shape[-1], size = channels / norm.groups;
    const float per_element = 1.0f / static_cast<float>(x.shape.elements() / (batch * norm.groups));
    // Sums by channel first, groups of channels after: the image keeps its shape, which padded layouts reward.
    const auto group_mean = [&](const Hlo& values) {
      const Hlo sums = write_.reshape(write_.reduce("stablehlo.add", values, space), {batch, norm.groups, size});
      const Hlo mean = write_.scale(write_.reduce("stablehlo.add", sums, {2}), per_element);
      return write_.reshape(write_.broadcast(mean, {batch, norm.groups, size}, {0, 1}), {batch, channels});
    };
    const auto over_space = [&](const Hlo& rows) { return write_.broadcast(rows, x.shape, {0, rank - 1}); };
    const Hlo mean = group_mean(x);
    const Hlo centred = write_.subtract(x, over_space(mean));
    const Hlo gamma = write_.broadcast(vector(1), {batch, channels}, {1});
    const Hlo factor = write_.multiply(inverse_root(variance(x, centred, mean, group_mean), norm.eps), gamma);
    const Hlo beta = write_.broadcast(vector(2), x.shape, {rank - 1});
    const Hlo out = write_.add(write_.multiply(centred, over_space(factor)), beta);
    return narrow(norm.silu ? activate(ir::UnaryKind::kSilu, out) : out);
  }

  Hlo operator()(const ir::LayerNorm& norm) {
    const Hlo x = widen(input(0));
    const int last = x.shape.rank() - 1;
    const auto mean_of = [&](const Hlo& values) {
      return write_.scale(write_.reduce("stablehlo.add", values, {last}), 1.0f / static_cast<float>(x.shape[-1]));
    };
    const auto along = [&](const Hlo& rows) { return write_.broadcast(rows, x.shape, axes_from(0, last)); };
    const Hlo mean = mean_of(x);
    const Hlo centred = write_.subtract(x, along(mean));
    const Hlo factor = inverse_root(variance(x, centred, mean, mean_of), norm.eps);
    const Hlo gamma = write_.broadcast(vector(1), x.shape, {last}), beta = write_.broadcast(vector(2), x.shape, {last});
    return narrow(write_.add(write_.multiply(write_.multiply(centred, along(factor)), gamma), beta));
  }

  Hlo operator()(const ir::Unary& unary) { return narrow(activate(unary.kind, widen(input(0)))); }

  Hlo operator()(const ir::Binary& binary) {
    const Hlo a = widen(input(0));
    Hlo b = widen(input(1));
    if (b.shape != a.shape) {  // broadcast_in_dim repeats axes of extent 1
      const std::vector<int> axes = axes_from(0, a.shape.rank());
      b = write_.broadcast(b, a.shape, axes);
    }
    return narrow(binary.kind == ir::BinaryKind::kAdd ? write_.add(a, b) : write_.multiply(a, b));
  }

  Hlo operator()(const ir::Scale& scale) { return narrow(write_.scale(widen(input(0)), scale.factor)); }
  Hlo operator()(const ir::Geglu&) { return narrow(gated(widen(input(0)))); }

  Hlo operator()(const ir::UpsampleNearest& up) {
    Hlo x = narrow(input(0));
    const std::pair<int, int64_t> targets[] = {{1, up.height}, {2, up.width}};
    for (const auto& [axis, extent] : targets) {
      std::vector<int32_t> sources;
      for (int64_t i = 0; i < extent; ++i) sources.push_back(static_cast<int32_t>(i * x.shape[axis] / extent));
      x = write_.take(x, write_.constant(std::span<const int32_t>(sources)), axis);
    }
    return x;
  }

  Hlo operator()(const ir::Concat&) {
    std::vector<Hlo> parts;
    for (size_t i = 0; i < node_->inputs.size(); ++i) parts.push_back(narrow(input(i)));
    return write_.concatenate(parts, node_->shape.rank() - 1);
  }
  Hlo operator()(const ir::Slice& slice) { return write_.slice(input(0), slice.axis, slice.begin, slice.end); }
  Hlo operator()(const ir::Reshape& reshape) { return write_.reshape(input(0), reshape.shape); }

  Hlo operator()(const ir::Embedding&) {
    const Hlo table = weight(node_->inputs[1], WeightLayout::kAsStored);
    return write_.take(table, input(0), 0);
  }

  Hlo operator()(const ir::GatherRow&) {  // all other rows are masked: exact, and no gather with two indices
    const Hlo x = widen(input(0));
    const Shape rows{x.shape[0], x.shape[1]};
    const Hlo is_row = write_.compare("EQ", write_.iota(rows, 1), write_.broadcast(input(1), rows, {0}));
    const Hlo masked = write_.select(write_.broadcast(is_row, x.shape, {0, 1}), x, write_.splat(0, x.shape));
    return narrow(write_.reduce("stablehlo.add", masked, {1}));
  }

  Hlo operator()(const ir::TimestepEmbedding& embedding) {
    const Hlo t = input(0);  // float: 16 bits do not tell 998 from 999
    const int64_t half = embedding.dim / 2;
    const float slope = -static_cast<float>(std::log(double{embedding.max_period}));
    std::vector<float> frequencies;
    for (int64_t i = 0; i < half; ++i)
      frequencies.push_back(static_cast<float>(
          std::exp(double{slope * static_cast<float>(i) / (static_cast<float>(half) - embedding.shift)})));
    std::vector<int64_t> dims = t.shape.dims();
    dims.push_back(half);
    const Shape shape{dims};
    const int last = shape.rank() - 1;
    const Hlo angle =
        write_.multiply(write_.broadcast(t, shape, axes_from(0, last)),
                        write_.broadcast(write_.constant(std::span<const float>(frequencies)), shape, {last}));
    const Hlo cosine = write_.unary("stablehlo.cosine", angle), sine = write_.unary("stablehlo.sine", angle);
    const bool cosine_first = embedding.flip_sin_to_cos;
    return narrow(write_.concatenate({cosine_first ? cosine : sine, cosine_first ? sine : cosine}, last));
  }

 private:
  const Hlo& value(ir::Value v) const { return values_[static_cast<size_t>(v.id)]; }
  /// A computed value or an input of the graph; a weight counts as a float vector.
  Hlo input(size_t i) {
    const ir::Value v = node_->inputs[i];
    return std::holds_alternative<ir::Weight>(graph_[v].op) ? weight(v, WeightLayout::kAsStored, DType::kF32)
                                                            : value(v);
  }
  Hlo vector(size_t i) { return weight(node_->inputs[i], WeightLayout::kAsStored, DType::kF32); }
  Hlo weight(ir::Value v, WeightLayout layout) { return weight(v, layout, compute_); }

  /// Norms and biases stay float: they are small.
  Hlo weight(ir::Value v, WeightLayout layout, DType dtype) {
    const auto [found, is_new] = weights_.try_emplace({v.id, layout, dtype});
    if (!is_new) return found->second;
    const ir::Node& node = graph_[v];
    const Shape& s = node.shape;
    const Shape shape = layout == WeightLayout::kMatrix        ? Shape{s[0], s[1]}
                        : layout == WeightLayout::kConvolution ? Shape{s[2], s[3], s[1], s[0]}
                                                               : s;
    out_.arguments.push_back({-1, std::get<ir::Weight>(node.op).name, layout, shape, dtype});
    return found->second = write_.argument(shape, dtype);
  }

  Hlo widen(const Hlo& x) { return write_.convert(x, DType::kF32); }
  Hlo narrow(const Hlo& x) { return write_.convert(x, compute_); }

  /// In float from the differences; in 16 bits mean of squares minus square of mean, which is no worse than the values
  /// are, and reads x once. Of equal values it may come out below zero.
  template <class Mean>
  Hlo variance(const Hlo& x, const Hlo& centred, const Hlo& mean, const Mean& mean_of) {
    if (compute_ == DType::kF32) return mean_of(write_.multiply(centred, centred));
    const Hlo difference = write_.subtract(mean_of(write_.multiply(x, x)), write_.multiply(mean, mean));
    return write_.binary("stablehlo.maximum", difference, write_.splat(0, difference.shape));
  }
  Hlo inverse_root(const Hlo& variance, float eps) {
    return write_.unary("stablehlo.rsqrt", write_.add(variance, write_.splat(eps, variance.shape)));
  }

  /// The kernel that does to x with zeros between its pixels what `kernel` does to x with every pixel doubled: of each
  /// axis, k[i] + k[i - 1]. 4 taps of 4x4 meet a pixel, not 9 of 3x3, and the large image never exists.
  Hlo doubled(Hlo kernel) {
    for (const size_t axis : {size_t{0}, size_t{1}}) {
      std::vector<int64_t> none(4), one(4);
      one[axis] = 1;
      kernel = write_.add(write_.pad(kernel, none, one), write_.pad(kernel, one, none));
    }
    return kernel;
  }

  /// bias, row bias, activation and residual of a Conv2d or Linear.
  Hlo finish_product(const Hlo& sums, const ir::Epilogue& epilogue) {
    Hlo x = widen(sums);
    const int last = x.shape.rank() - 1;
    if (has_input(*node_, ProductInput::kBias))
      x = write_.add(x, write_.broadcast(vector(ProductInput::kBias), x.shape, {last}));
    if (has_input(*node_, ProductInput::kRowBias))
      x = write_.add(x, write_.broadcast(widen(input(ProductInput::kRowBias)), x.shape, {0, last}));
    if (epilogue.activation) x = activate(*epilogue.activation, x);
    if (epilogue.geglu) x = gated(x);
    if (has_input(*node_, ProductInput::kResidual)) x = write_.add(x, widen(input(ProductInput::kResidual)));
    return narrow(x);
  }

  Hlo activate(ir::UnaryKind kind, const Hlo& x) {
    switch (kind) {
      case ir::UnaryKind::kSilu:
        return write_.multiply(x, write_.unary("stablehlo.logistic", x));
      case ir::UnaryKind::kGelu:
        return half_of_one_plus(x, write_.unary("chlo.erf", write_.scale(x, static_cast<float>(M_SQRT1_2))));
      case ir::UnaryKind::kGeluTanh: {
        const Hlo cube = write_.multiply(write_.multiply(x, x), x);
        const Hlo inner =
            write_.scale(write_.add(x, write_.scale(cube, 0.044715f)), static_cast<float>(std::sqrt(2 / M_PI)));
        return half_of_one_plus(x, write_.unary("stablehlo.tanh", inner));
      }
      case ir::UnaryKind::kQuickGelu:
        return write_.multiply(x, write_.unary("stablehlo.logistic", write_.scale(x, 1.702f)));
      case ir::UnaryKind::kRelu:
        return write_.binary("stablehlo.maximum", x, write_.splat(0, x.shape));
      case ir::UnaryKind::kTanh:
        return write_.unary("stablehlo.tanh", x);
    }
    CHECK(false);
  }
  /// x / 2 * (1 + y)
  Hlo half_of_one_plus(const Hlo& x, const Hlo& y) {
    return write_.multiply(write_.scale(x, 0.5f), write_.add(y, write_.splat(1, y.shape)));
  }
  /// (a, b) -> a * gelu(b). In 16 bits the whole is stored so before: it is the largest value of a transformer.
  Hlo gated(const Hlo& whole) {
    const Hlo x = narrow(whole);
    const int last = x.shape.rank() - 1;
    const int64_t half = x.shape[-1] / 2;
    return write_.multiply(widen(write_.slice(x, last, 0, half)),
                           activate(ir::UnaryKind::kGelu, widen(write_.slice(x, last, half, 2 * half))));
  }

  /// [B,S,heads*D] -> [B,S,heads,D]
  Hlo heads_of(const Hlo& x, int heads) {
    return write_.reshape(narrow(x), {x.shape[0], x.shape[1], heads, x.shape[2] / heads});
  }

  /// Queries `first`, ... of a block, [B,s,heads,D], scaled, with all keys, [B,T,heads,D], and all values, which end in
  /// a column of ones: the product with the powers has their sum there.
  Hlo attend(const Hlo& q, const Hlo& k, const Hlo& values_and_ones, bool causal, int64_t first) {
    const Hlo products = write_.dot(q, k, {{0, 2}, {0, 2}, {3}, {3}}, compute_);  // [B,heads,s,T]
    const Hlo scores = causal ? masked(widen(products), first) : widen(products);
    const std::vector<int> rows = {0, 1, 2};
    const Hlo largest = write_.broadcast(write_.reduce("stablehlo.maximum", scores, {3}), scores.shape, rows);
    const Hlo powers = narrow(write_.unary("stablehlo.exponential", write_.subtract(scores, largest)));
    // [B,heads,s,D+1]. Before the division these are as large as there are keys: too large for half precision.
    const DType type = compute_ == DType::kF16 ? DType::kF32 : compute_;
    const Hlo mixed = write_.dot(powers, values_and_ones, {{0, 1}, {0, 2}, {3}, {1}}, type);
    const int64_t dim = q.shape[3];
    const Hlo out = widen(write_.slice(mixed, 3, 0, dim)), sums = widen(write_.slice(mixed, 3, dim, dim + 1));
    const Hlo divisor = write_.broadcast(sums, out.shape, {0, 1, 2, 3});
    return narrow(write_.transpose(write_.divide(out, divisor), {0, 2, 1, 3}));
  }

  /// Minus infinity where the key comes after the query.
  Hlo masked(const Hlo& scores, int64_t first) {
    const Shape block{scores.shape[2], scores.shape[3]};
    const std::vector<int32_t> start = {static_cast<int32_t>(first)};
    const Hlo offset = write_.broadcast(write_.constant(std::span<const int32_t>(start)), block, {0});
    const Hlo is_seen = write_.compare("LE", write_.iota(block, 1), write_.add(write_.iota(block, 0), offset));
    return write_.select(write_.broadcast(is_seen, scores.shape, {2, 3}), scores,
                         write_.splat(-INFINITY, scores.shape));
  }

  using WeightKey = std::tuple<int, WeightLayout, DType>;

  const ir::Graph& graph_;
  DType compute_;
  StableHloWriter write_;
  std::vector<Hlo> values_;
  std::map<WeightKey, Hlo> weights_;
  const ir::Node* node_ = nullptr;
  StableHlo out_;
};

}  // namespace

DType compute_type(Precision precision) {
  CHECK(precision != Precision::kAuto, "resolved before");
  return precision == Precision::kBF16 ? DType::kBF16 : precision == Precision::kF16 ? DType::kF16 : DType::kF32;
}

StableHlo to_stablehlo(const ir::Graph& graph, DType compute) {
  return Lowering(graph, compute).run();
}

}  // namespace sfumato::pjrt
