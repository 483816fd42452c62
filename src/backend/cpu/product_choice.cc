#include "backend/cpu/product.h"

namespace sfumato::cpu {
namespace {

bool is_dense_3x3(const Product& p) {
  return p.conv && p.kernel_height == 3 && p.kernel_width == 3 && p.conv->stride == 1 && p.channels >= 32 &&
         p.out_channels >= 32;
}
bool is_1x1(const Product& p) {
  return p.conv && p.kernel_height == 1 && p.kernel_width == 1 && p.conv->stride == 1 && p.conv->pad_top == 0 &&
         p.conv->pad_left == 0 && p.conv->pad_bottom == 0 && p.conv->pad_right == 0 && p.factor() == 1;
}

/// Tiles of 4x4 outputs, and what the transformed weights take.
int64_t winograd_tiles(const Product& p) {
  return ((p.out_height + 3) / 4) * ((p.out_width + 3) / 4);
}
int64_t winograd_mib(const Product& p) {
  return 36 * p.channels * p.out_channels * static_cast<int64_t>(sizeof(float)) >> 20;
}

/// Fewer tiles spend the time on reading the weights, four times as large as a direct convolution's; and beyond 192 MiB
/// a layer they cost more memory than they are worth (of Stable Diffusion's layers above 16x16 pixels all but SDXL's
/// lowest stay below).
bool suits_winograd(const Product& p) {
  return is_dense_3x3(p) && winograd_tiles(p) >= 64 && winograd_mib(p) <= 192;
}

/// The first rule that fits decides. Measured: docs/kernels.md.
struct ProductRule {
  Precision precision;
  Isa first, last;  // levels
  bool (*fits)(const Product& p);
  ProductKernel kernel;
};
constexpr ProductRule kRules[] = {
    {Precision::kF32, Isa::kAvx2, Isa::kAmx, suits_winograd, ProductKernel::kWinograd},
    // The whole feed-forward half in one pass: the sums before the gate are never written.
    {Precision::kF32, Isa::kAvx2, Isa::kAmx, [](const Product& p) { return p.epilogue.geglu && p.height >= 64; },
     ProductKernel::kMatmul},
    {Precision::kF32, Isa::kAvx2, Isa::kAmx,
     [](const Product& p) { return is_1x1(p) && p.channels >= 32 && p.out_channels >= 32; }, ProductKernel::kMatmul},
    // In float, and faster than rounded ones but for AMX's.
    {Precision::kBF16, Isa::kAvx2, Isa::kAvx512Fp16, suits_winograd, ProductKernel::kWinograd},
};

}  // namespace

Product describe_product(const NodeContext& context) {
  Product p;
  const Shape &x = context.input(0).shape, &w = context.input(1).shape, &y = context.node.shape;
  p.images = x.rank() > 1 ? x[0] : 1;
  p.channels = x[-1];
  p.out_channels = w[0];
  if (const auto* conv = std::get_if<ir::Conv2d>(&context.node.op)) {
    p.conv = conv;
    p.height = x[1], p.width = x[2];
    p.out_height = y[1], p.out_width = y[2];
    p.kernel_height = w[2], p.kernel_width = w[3];
    p.epilogue = conv->epilogue;
  } else {
    p.height = p.out_height = x.elements() / p.images / p.channels;
    p.epilogue = std::get<ir::Linear>(context.node.op).epilogue;
  }
  return p;
}

ProductKernel choose_kernel(const Product& product, Precision precision, Isa isa) {
  for (const ProductRule& rule : kRules)
    if (precision == rule.precision && isa >= rule.first && isa <= rule.last && rule.fits(product)) return rule.kernel;
  return ProductKernel::kOneDnn;
}

}  // namespace sfumato::cpu
