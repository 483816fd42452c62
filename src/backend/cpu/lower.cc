// One op, one step: where the graph meets the kernels.
#include <algorithm>

#include "backend/cpu/product.h"
#include "backend/cpu/program.h"
#include "base/strings.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/norm/norm.h"
#include "kernels/resize/resize.h"

namespace sfumato::cpu {
namespace {

/// Four extents, ones in front.
struct Dims4 {
  int64_t d[4] = {1, 1, 1, 1};
  explicit Dims4(const Shape& shape) {
    CHECK(shape.rank() <= 4, "more than four axes");
    std::copy(shape.dims().begin(), shape.dims().end(), d + 4 - shape.rank());
  }
};

struct Lower {
  NodeContext& context;
  const Location out = context.out;

  const Shape& shape() const { return context.node.shape; }
  const Shape& shape(size_t i) const { return context.input(i).shape; }
  Location at(size_t i) const { return context.at(i); }

  Result<Step> operator()(const ir::Conv2d&) const { return lower_product(context); }
  Result<Step> operator()(const ir::Linear&) const { return lower_product(context); }

  Result<Step> operator()(const ir::Attention& op) const {
    kernels::AttentionArgs args;
    args.batch = shape()[0], args.queries = shape()[1], args.keys = shape(1)[1];
    args.heads = op.heads, args.head_size = shape()[2] / op.heads;
    args.q_stride = args.k_stride = args.v_stride = args.out_stride = shape()[2];
    args.scale = op.scale, args.causal = op.causal;
    if (context.precision == Precision::kBF16) args.precision = kernels::AttentionPrecision::kBF16;
    context.scratch_bytes = kernels::attention_scratch(args);
    return Step([args, q = at(0), k = at(1), v = at(2), out = out](const Frame& frame) mutable {
      args.q = frame.f32(q), args.k = frame.f32(k), args.v = frame.f32(v), args.out = frame.out(out);
      kernels::attention(args, frame.scratch());
    });
  }

  Result<Step> operator()(const ir::GroupNorm& op) const {
    const int64_t batch = shape()[0], channels = shape()[-1], pixels = shape().elements() / batch / channels;
    context.scratch_bytes = kernels::group_norm_scratch(batch, pixels, channels) * sizeof(float);
    return Step([=, x = at(0), gamma = at(1), beta = at(2), out = out](const Frame& frame) {
      kernels::group_norm(frame.f32(x), batch, pixels, channels, op.groups, op.eps, frame.f32(gamma), frame.f32(beta),
                          op.silu, frame.out(out), reinterpret_cast<float*>(frame.scratch()));
    });
  }
  Result<Step> operator()(const ir::LayerNorm& op) const {
    const int64_t channels = shape()[-1], rows = shape().elements() / channels;
    return Step([=, x = at(0), gamma = at(1), beta = at(2), out = out](const Frame& frame) {
      kernels::layer_norm(frame.f32(x), rows, channels, op.eps, frame.f32(gamma), frame.f32(beta), frame.out(out));
    });
  }
  Result<Step> operator()(const ir::Unary& op) const {
    return Step([kind = unary_op(op.kind), count = shape().elements(), x = at(0), out = out](const Frame& frame) {
      kernels::unary(kind, frame.f32(x), count, frame.out(out));
    });
  }
  Result<Step> operator()(const ir::Binary& op) const {
    const auto kind = op.kind == ir::BinaryKind::kAdd ? kernels::BinaryOp::kAdd : kernels::BinaryOp::kMul;
    return Step(
        [=, dims = Dims4(shape()), b_dims = Dims4(shape(1)), a = at(0), b = at(1), out = out](const Frame& frame) {
          kernels::binary(kind, frame.f32(a), frame.f32(b), dims.d, b_dims.d, frame.out(out));
        });
  }
  Result<Step> operator()(const ir::Scale& op) const {
    return Step([factor = op.factor, count = shape().elements(), x = at(0), out = out](const Frame& frame) {
      kernels::scale(frame.f32(x), count, factor, frame.out(out));
    });
  }
  Result<Step> operator()(const ir::Geglu&) const {
    const int64_t channels = shape()[-1], rows = shape().elements() / channels;
    return Step([=, x = at(0), out = out](const Frame& frame) {
      kernels::geglu(frame.f32(x), rows, channels, frame.out(out));
    });
  }
  Result<Step> operator()(const ir::UpsampleNearest& op) const {
    return Step([op, from = shape(0), x = at(0), out = out](const Frame& frame) {
      kernels::upsample_nearest(frame.f32(x), from[0], from[1], from[2], from[3], op.height, op.width, frame.out(out));
    });
  }
  Result<Step> operator()(const ir::Concat&) const {
    struct Part {
      Location at;
      int64_t width;
    };
    std::vector<Part> parts;
    for (size_t i = 0; i < context.node.inputs.size(); ++i) parts.push_back({at(i), shape(i)[-1]});
    const int64_t width = shape()[-1], rows = shape().elements() / width;
    return Step([=, out = out](const Frame& frame) {
      float* to = frame.out(out);
      for (const Part& part : parts) {
        kernels::copy_rows(frame.f32(part.at), part.width, rows, part.width, to, width);
        to += part.width;
      }
    });
  }
  Result<Step> operator()(const ir::Slice& op) const {
    int64_t before = 1, after = 1;
    for (int i = 0; i < op.axis; ++i) before *= shape()[i];
    for (int i = op.axis + 1; i < shape().rank(); ++i) after *= shape()[i];
    const int64_t from = shape(0)[op.axis] * after, begin = op.begin * after, width = (op.end - op.begin) * after;
    return Step([=, x = at(0), out = out](const Frame& frame) {
      kernels::copy_rows(frame.f32(x) + begin, from, before, width, frame.out(out), width);
    });
  }
  Result<Step> operator()(const ir::Embedding&) const {
    const int64_t count = shape(0).elements(), channels = shape()[-1];
    return Step([=, ids = at(0), table = at(1), dtype = context.input(1).dtype, out = out](const Frame& frame) {
      kernels::embedding(frame.i32(ids), count, frame.at(table), dtype, channels, frame.out(out));
    });
  }
  Result<Step> operator()(const ir::GatherRow&) const {
    const int64_t batch = shape()[0], rows = shape(0)[1], channels = shape()[1];
    return Step([=, x = at(0), index = at(1), out = out](const Frame& frame) {
      for (int64_t b = 0; b < batch; ++b)
        std::copy_n(frame.f32(x) + (b * rows + frame.i32(index)[b]) * channels, channels,
                    frame.out(out) + b * channels);
    });
  }
  Result<Step> operator()(const ir::TimestepEmbedding& op) const {
    return Step([op, count = shape(0).elements(), t = at(0), out = out](const Frame& frame) {
      kernels::timestep_embedding(frame.f32(t), count, op.dim, op.flip_sin_to_cos, op.shift, op.max_period,
                                  frame.out(out));
    });
  }

  // These have no step: cpu_backend.cc gives them a place only.
  Result<Step> operator()(const ir::Input&) const { return no_step(); }
  Result<Step> operator()(const ir::Weight&) const { return no_step(); }
  Result<Step> operator()(const ir::Reshape&) const { return no_step(); }
  Result<Step> no_step() const { CHECK(false, "this op has no step"); }
};

}  // namespace

kernels::UnaryOp unary_op(ir::UnaryKind kind) {
  switch (kind) {
    case ir::UnaryKind::kSilu:
      return kernels::UnaryOp::kSilu;
    case ir::UnaryKind::kGelu:
      return kernels::UnaryOp::kGelu;
    case ir::UnaryKind::kGeluTanh:
      return kernels::UnaryOp::kGeluTanh;
    case ir::UnaryKind::kQuickGelu:
      return kernels::UnaryOp::kQuickGelu;
    case ir::UnaryKind::kRelu:
      return kernels::UnaryOp::kRelu;
    case ir::UnaryKind::kTanh:
      return kernels::UnaryOp::kTanh;
  }
  CHECK(false);
}

Result<Step> lower(NodeContext& context) {
  return std::visit(Lower{context}, context.node.op);
}

}  // namespace sfumato::cpu
