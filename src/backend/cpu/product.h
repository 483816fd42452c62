#pragma once
// What a Conv2d or Linear multiplies, and by whose kernels.
#include "backend/cpu/program.h"
#include "base/cpu.h"

namespace sfumato::cpu {

/// A node as one product an image: rows of x times the weight. For a Linear over [...,K] an image is one sample's rows.
struct Product {
  const ir::Conv2d* conv = nullptr;  // null: a Linear
  int64_t images = 1;
  int64_t height = 1, width = 1, channels = 1;              // of an image's input as stored (a Linear: rows in height)
  int64_t out_height = 1, out_width = 1, out_channels = 1;  // of the sums, before geglu
  int64_t kernel_height = 1, kernel_width = 1;
  ir::Epilogue epilogue;

  int64_t factor() const { return conv && conv->upsample2x ? 2 : 1; }
  int64_t source_elements() const { return height * width * channels; }  // stored, an image
  int64_t sum_elements() const { return out_height * out_width * out_channels; }
  int64_t result_elements() const { return epilogue.geglu ? sum_elements() / 2 : sum_elements(); }
};

Product describe_product(const NodeContext& context);

enum class ProductKernel { kOneDnn, kMatmul, kWinograd };
/// The fastest as measured (docs/kernels.md). A function of one image's shape, the precision and the instruction set
/// alone: then batch, threads and run never change a picture.
ProductKernel choose_kernel(const Product& product, Precision precision, Isa isa);

/// A step for context.node, a Conv2d or Linear. Errors: out of memory, or a primitive that oneDNN does not have.
Result<Step> lower_product(NodeContext& context);

}  // namespace sfumato::cpu
