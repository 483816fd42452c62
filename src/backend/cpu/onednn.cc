#include "backend/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "backend/cpu/product.h"
#include "base/cpu.h"
#include "base/strings.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/resize/resize.h"

namespace sfumato::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

/// oneDNN's limit is set once, before its first use: by SFUMATO_MAX_ISA, not by a test's later set_active_isa().
dnnl::engine make_engine() {
  constexpr dnnl::cpu_isa kLimits[] = {dnnl::cpu_isa::sse41,
                                       dnnl::cpu_isa::avx2,
                                       dnnl::cpu_isa::avx512_core_vnni,
                                       dnnl::cpu_isa::avx512_core_bf16,
                                       dnnl::cpu_isa::avx512_core_bf16,
                                       dnnl::cpu_isa::all};
  dnnl::set_max_cpu_isa(kLimits[static_cast<int>(active_isa())]);
  return dnnl::engine(dnnl::engine::kind::cpu, 0);
}

dnnl::engine& engine() {
  static dnnl::engine cpu = make_engine();
  return cpu;
}

void append_activation(dnnl::post_ops& ops, ir::UnaryKind kind) {
  using Algorithm = dnnl::algorithm;
  switch (kind) {
    case ir::UnaryKind::kSilu:
      return ops.append_eltwise(1, Algorithm::eltwise_swish, 1, 0);
    case ir::UnaryKind::kQuickGelu:
      return ops.append_eltwise(1, Algorithm::eltwise_swish, 1.702f, 0);
    case ir::UnaryKind::kGelu:
      return ops.append_eltwise(1, Algorithm::eltwise_gelu_erf, 0, 0);
    case ir::UnaryKind::kGeluTanh:
      return ops.append_eltwise(1, Algorithm::eltwise_gelu_tanh, 0, 0);
    case ir::UnaryKind::kRelu:
      return ops.append_eltwise(1, Algorithm::eltwise_relu, 0, 0);
    case ir::UnaryKind::kTanh:
      return ops.append_eltwise(1, Algorithm::eltwise_tanh, 0, 0);
  }
}

/// One compiled oneDNN primitive for one image, and the descriptions of its memory.
struct Primitive {
  dnnl::primitive run;
  memory::desc input, weights, bias, output;
  memory::desc plain_weights;  // the file's order
  size_t scratchpad = 0;
};

/// Makes the primitive of `desc`, which says "any" for the weights' order; oneDNN's choice goes into `out`.
template <class PrimitiveKind, class Desc>
void choose(const Desc& desc, const Product& p, bool has_residual, Primitive& out) {
  dnnl::post_ops ops;
  if (p.epilogue.activation) append_activation(ops, *p.epilogue.activation);
  if (has_residual) ops.append_binary(dnnl::algorithm::binary_add, out.output);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const typename PrimitiveKind::primitive_desc chosen(desc, attributes, engine());
  out.weights = chosen.weights_desc();
  out.scratchpad = chosen.scratchpad_desc().get_size();
  out.run = PrimitiveKind(chosen);
}

Primitive make_primitive(const Product& p, Type type, bool has_residual) {
  Primitive out;
  if (p.conv) {
    out.input = {{1, p.channels, p.height * p.factor(), p.width * p.factor()}, type, Tag::nhwc};
    out.plain_weights = {{p.out_channels, p.channels, p.kernel_height, p.kernel_width}, type, Tag::oihw};
    out.bias = {{p.out_channels}, Type::f32, Tag::x};
    out.output = {{1, p.out_channels, p.out_height, p.out_width}, Type::f32, Tag::nhwc};
    const memory::desc any(out.plain_weights.dims(), type, Tag::any);
    choose<dnnl::convolution_forward>(
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                        out.input, any, out.bias, out.output, {p.conv->stride, p.conv->stride},
                                        {p.conv->pad_top, p.conv->pad_left}, {p.conv->pad_bottom, p.conv->pad_right}),
        p, has_residual, out);
  } else {
    out.input = {{p.height, p.channels}, type, Tag::ab};
    out.plain_weights = {{p.channels, p.out_channels}, type, Tag::ba};
    out.bias = {{1, p.out_channels}, Type::f32, Tag::ab};
    out.output = {{p.height, p.out_channels}, Type::f32, Tag::ab};
    const memory::desc any(out.plain_weights.dims(), type, Tag::any);
    choose<dnnl::matmul>(dnnl::matmul::desc(out.input, any, out.bias, out.output), p, has_residual, out);
  }
  return out;
}

/// Weights in the file's order and type -> `type` in oneDNN's blocks. `plain` is room for them in between.
void block_weights(const Primitive& primitive, const void* source, DType dtype, std::byte* plain, std::byte* blocked) {
  const memory::desc& order = primitive.plain_weights;
  const int64_t count = static_cast<int64_t>(order.get_size() / memory::data_type_size(order.data_type()));
  if (order.data_type() == Type::bf16)
    kernels::convert_to_bf16(source, dtype, count, reinterpret_cast<uint16_t*>(plain));
  else
    kernels::convert_to_f32(source, dtype, count, reinterpret_cast<float*>(plain));
  memory from(order, engine(), plain), to(primitive.weights, engine(), blocked);
  dnnl::stream stream(engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
}

/// An image as the primitive reads it: rounded, doubled, or just as it is stored.
const void* prepare_input(const Product& p, Type type, const float* source, std::byte* scratch) {
  if (type == Type::bf16) {
    auto* rounded = reinterpret_cast<uint16_t*>(scratch);
    if (p.factor() == 2)
      kernels::upsample2x_to_bf16(source, p.height, p.width, p.channels, rounded);
    else
      kernels::convert_f32_to_bf16(source, p.source_elements(), rounded);
    return rounded;
  }
  if (p.factor() == 1) return source;
  auto* doubled = reinterpret_cast<float*>(scratch);
  kernels::upsample_nearest(source, 1, p.height, p.width, p.channels, 2 * p.height, 2 * p.width, doubled);
  return doubled;
}

/// Where in the step's scratch things stand.
struct Scratch {
  size_t input, bias, sums, own, plain, blocked, total;
  Scratch(const Product& p, const Primitive& primitive, bool blocks_each_run) {
    size_t at = 0;
    const auto take = [&](size_t bytes) { return std::exchange(at, at + round_up(bytes)); };
    input = take(primitive.input.get_size());
    bias = take(static_cast<size_t>(p.out_channels) * sizeof(float));
    sums = take(p.epilogue.geglu ? static_cast<size_t>(p.sum_elements()) * sizeof(float) : 0);
    own = take(primitive.scratchpad);
    plain = take(blocks_each_run ? primitive.plain_weights.get_size() : 0);
    blocked = take(blocks_each_run ? primitive.weights.get_size() : 0);
    total = at;
  }
};

/// One Conv2d or Linear, image by image.
struct ProductStep {
  Product p;
  Type type;
  Primitive primitive;
  Scratch at;
  const std::byte* kept_weights;  // null: blocked anew from the file's on each run
  DType stored;
  Location x, weights, out;
  std::optional<Location> bias, row_bias, residual;

  void operator()(const Frame& frame) const {
    std::byte* scratch = frame.scratch();
    const std::byte* blocked = kept_weights;
    if (!blocked) {
      block_weights(primitive, frame.at(weights), stored, scratch + at.plain, scratch + at.blocked);
      blocked = scratch + at.blocked;
    }
    for (int64_t image = 0; image < p.images; ++image) run_image(frame, image, blocked);
  }

 private:
  void run_image(const Frame& frame, int64_t image, const std::byte* blocked) const {
    std::byte* scratch = frame.scratch();
    auto* image_bias = reinterpret_cast<float*>(scratch + at.bias);
    for (int64_t c = 0; c < p.out_channels; ++c)
      image_bias[c] =
          (bias ? frame.f32(*bias)[c] : 0.0f) + (row_bias ? frame.f32(*row_bias)[image * p.out_channels + c] : 0.0f);
    const void* input = prepare_input(p, type, frame.f32(x) + image * p.source_elements(), scratch + at.input);
    float* result = frame.out(out) + image * p.result_elements();
    float* sums = p.epilogue.geglu ? reinterpret_cast<float*>(scratch + at.sums) : result;

    const auto bound = [](const memory::desc& desc, const void* data) {
      return memory(desc, engine(), const_cast<void*>(data));
    };
    const memory::desc own({static_cast<int64_t>(primitive.scratchpad)}, Type::u8, Tag::x);
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, bound(primitive.input, input)},
                                            {DNNL_ARG_WEIGHTS, bound(primitive.weights, blocked)},
                                            {DNNL_ARG_BIAS, bound(primitive.bias, image_bias)},
                                            {DNNL_ARG_DST, bound(primitive.output, sums)},
                                            {DNNL_ARG_SCRATCHPAD, bound(own, scratch + at.own)}};
    if (residual) {
      const int post_op = p.epilogue.activation ? 1 : 0;
      args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_op) | DNNL_ARG_SRC_1,
                   bound(primitive.output, frame.f32(*residual) + image * p.result_elements()));
    }
    dnnl::stream stream(engine());
    primitive.run.execute(stream, args);
    stream.wait();
    if (p.epilogue.geglu) kernels::geglu(sums, p.out_height * p.out_width, p.out_channels / 2, result);
  }
};

}  // namespace

bool onednn_bf16_pays() {
  return active_isa() == Isa::kAvx512Bf16 || active_isa() == Isa::kAmx;
}

Result<Step> lower_onednn(NodeContext& context) try {
  const Type type = context.precision == Precision::kBF16 ? Type::bf16 : Type::f32;
  const Product p = describe_product(context);
  const bool has_residual = context.has(ir::ProductInput::kResidual);
  CHECK(!(has_residual && p.epilogue.geglu), "a residual after geglu");
  const Primitive primitive = make_primitive(p, type, has_residual);
  const DType stored = context.input(1).dtype;

  const bool blocks_each_run =
      stored != DType::kF32 && (context.keeps_none || (type == Type::f32 && context.saves_memory));
  std::byte* kept = nullptr;
  if (!blocks_each_run) {
    kept = context.keep(primitive.weights.get_size());
    const AlignedPtr<std::byte> plain = aligned_array<std::byte>(primitive.plain_weights.get_size());
    if (!kept || !plain) return Error{ErrorKind::kOutOfMemory, "[backend.onednn] out of memory for the weights"};
    block_weights(primitive, context.at(1).fixed, stored, plain.get(), kept);
    context.release(context.input(1));
  }
  const Scratch scratch(p, primitive, blocks_each_run);
  context.scratch_bytes = scratch.total;
  const auto optional = [&](size_t i) { return context.has(i) ? std::optional(context.at(i)) : std::nullopt; };
  return Step(ProductStep{p, type, primitive, scratch, kept, stored, context.at(0), context.at(1), context.out,
                          optional(ir::ProductInput::kBias), optional(ir::ProductInput::kRowBias),
                          optional(ir::ProductInput::kResidual)});
} catch (const dnnl::error& e) {
  return runtime_error(str("[backend.onednn] ", e.what()));
}

}  // namespace sfumato::cpu
