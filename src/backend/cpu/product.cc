// Our own float kernels for convolutions and linear layers, and the choice between them and oneDNN's.
#include "backend/cpu/product.h"

#include <algorithm>

#include "backend/cpu/onednn.h"
#include "base/cpu.h"
#include "kernels/conv/winograd.h"
#include "kernels/matmul/matmul.h"

namespace sfumato::cpu {
namespace {

/// The optional inputs of a product, and the biases of its images added up.
struct Extras {
  std::optional<Location> bias, row_bias, residual;

  explicit Extras(const NodeContext& context) {
    const auto optional = [&](size_t i) { return context.has(i) ? std::optional(context.at(i)) : std::nullopt; };
    bias = optional(ir::ProductInput::kBias);
    row_bias = optional(ir::ProductInput::kRowBias);
    residual = optional(ir::ProductInput::kResidual);
  }

  bool has_bias() const { return bias || row_bias; }

  /// out [images,channels]
  void add_up(const Frame& frame, int64_t images, int64_t channels, float* out) const {
    for (int64_t i = 0; i < images; ++i)
      for (int64_t c = 0; c < channels; ++c)
        out[i * channels + c] =
            (bias ? frame.f32(*bias)[c] : 0.0f) + (row_bias ? frame.f32(*row_bias)[i * channels + c] : 0.0f);
  }
};

Error out_of_memory() {
  return {ErrorKind::kOutOfMemory, "[backend.product] out of memory for the weights"};
}

struct MatmulStep {
  Product p;
  kernels::MatmulArgs args;  // of one image
  Extras extras;
  Location x, weights, out;
  DType stored;
  const float* kept;          // null: packed anew from the file's on each run
  size_t packed_at, work_at;  // in scratch, after the biases

  void operator()(const Frame& frame) const {
    auto* biases = reinterpret_cast<float*>(frame.scratch());
    auto* packed = reinterpret_cast<float*>(frame.scratch() + packed_at);
    std::byte* work = frame.scratch() + work_at;
    extras.add_up(frame, p.images, p.out_channels, biases);
    if (!kept) kernels::pack_weights(frame.at(weights), stored, args.columns, args.depth, args.end.geglu, packed, work);
    kernels::MatmulArgs a = args;
    a.weights = kept ? kept : packed;
    // Rows that share a bias go together.
    const int64_t images = extras.row_bias ? p.images : 1;
    a.rows = args.rows * p.images / images;
    for (int64_t i = 0; i < images; ++i) {
      a.a = frame.f32(x) + i * p.source_elements();
      a.out = frame.out(out) + i * p.result_elements();
      if (extras.has_bias()) a.end.bias = biases + i * p.out_channels;
      if (extras.residual) a.end.residual = frame.f32(*extras.residual) + i * p.result_elements();
      kernels::matmul(a, work);
    }
  }
};

Result<Step> lower_matmul(NodeContext& context, const Product& p) {
  const DType stored = context.input(1).dtype;
  kernels::MatmulArgs args;
  args.rows = p.out_height * p.out_width, args.depth = p.channels, args.columns = p.out_channels;
  args.a_stride = p.channels, args.out_stride = p.result_elements() / args.rows;
  args.end.geglu = p.epilogue.geglu;
  if (p.epilogue.activation) args.end.has_activation = true, args.end.activation = unary_op(*p.epilogue.activation);
  const size_t packed =
      static_cast<size_t>(kernels::packed_weights_floats(args.columns, args.depth, args.end.geglu)) * sizeof(float);
  const bool packs_each_run = stored != DType::kF32 && context.saves_memory;
  const size_t packing = kernels::pack_weights_scratch(args.depth, stored);
  float* kept = nullptr;
  if (!packs_each_run) {
    kept = reinterpret_cast<float*>(context.keep(packed));
    const AlignedPtr<std::byte> room = aligned_array<std::byte>(packing);
    if (!kept || !room) return out_of_memory();
    kernels::pack_weights(context.at(1).fixed, stored, args.columns, args.depth, args.end.geglu, kept, room.get());
    context.release(context.input(1));
  }
  const size_t packed_at = round_up(static_cast<size_t>(p.images * p.out_channels) * sizeof(float));
  const size_t work_at = packed_at + (packs_each_run ? round_up(packed) : 0);
  kernels::MatmulArgs whole = args;
  whole.rows *= p.images;
  context.scratch_bytes =
      work_at + std::max({packs_each_run ? packing : 0, kernels::matmul_scratch(args), kernels::matmul_scratch(whole)});
  return Step(MatmulStep{p, args, Extras(context), context.at(0), context.at(1), context.out, stored, kept, packed_at,
                         work_at});
}

struct WinogradStep {
  kernels::WinogradArgs args;
  Extras extras;
  Location x, out;
  size_t work_at;

  void operator()(const Frame& frame) const {
    kernels::WinogradArgs a = args;
    auto* biases = reinterpret_cast<float*>(frame.scratch());
    extras.add_up(frame, a.batch, a.out_channels, biases);
    a.x = frame.f32(x), a.out = frame.out(out), a.bias = biases;
    if (extras.residual) a.residual = frame.f32(*extras.residual);
    kernels::winograd(a, frame.scratch() + work_at);
  }
};

Result<Step> lower_winograd(NodeContext& context, const Product& p) {
  kernels::WinogradArgs args;
  args.batch = p.images, args.height = p.height, args.width = p.width, args.channels = p.channels;
  args.doubled = p.factor() == 2;
  args.pad_top = p.conv->pad_top, args.pad_left = p.conv->pad_left;
  args.out_height = p.out_height, args.out_width = p.out_width, args.out_channels = p.out_channels;
  if (p.epilogue.activation) args.has_activation = true, args.activation = unary_op(*p.epilogue.activation);
  const auto floats = static_cast<size_t>(kernels::winograd_weights_floats(p.out_channels, p.channels));
  auto* transformed = reinterpret_cast<float*>(context.keep(floats * sizeof(float)));
  const AlignedPtr<std::byte> room = aligned_array<std::byte>(kernels::winograd_weights_scratch(p.channels));
  if (!transformed || !room) return out_of_memory();
  kernels::winograd_weights(context.at(1).fixed, context.input(1).dtype, p.out_channels, p.channels, transformed,
                            room.get());
  context.release(context.input(1));
  args.weights = transformed;
  const size_t work_at = round_up(static_cast<size_t>(p.images * p.out_channels) * sizeof(float));
  context.scratch_bytes = work_at + kernels::winograd_scratch(args);
  return Step(WinogradStep{args, Extras(context), context.at(0), context.out, work_at});
}

}  // namespace

Result<Step> lower_product(NodeContext& context) {
  const Product p = describe_product(context);
  switch (choose_kernel(p, context.precision, active_isa())) {
    case ProductKernel::kWinograd:
      return lower_winograd(context, p);
    case ProductKernel::kMatmul:
      return lower_matmul(context, p);
    case ProductKernel::kOneDnn:
      break;
  }
  return lower_onednn(context);
}

}  // namespace sfumato::cpu
