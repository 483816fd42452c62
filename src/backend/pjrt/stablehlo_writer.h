#pragma once
// Writes StableHLO text, one operation a line, in MLIR's generic form: the form that no version of the dialect changes.
// Operations and attributes: the StableHLO specification, v1. Shapes are the caller's business; CHECK finds bugs only.
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace sfumato::pjrt {

/// A value of the program: its SSA name, shape and element type (F32, F16, BF16, I32 or Bool).
struct Hlo {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
};

/// "tensor<1x77xf32>"
std::string type_text(const Shape& shape, DType dtype);
inline std::string type_text(const Hlo& value) {
  return type_text(value.shape, value.dtype);
}

class StableHloWriter {
 public:
  /// `exact`: products of floats in full precision, on hardware whose default is less.
  explicit StableHloWriter(bool exact) : exact_(exact) {}

  Hlo argument(Shape shape, DType dtype);
  Hlo splat(float value, Shape shape);            ///< F32
  Hlo constant(std::span<const float> values);    ///< F32 [n]
  Hlo constant(std::span<const int32_t> values);  ///< I32 [n]
  Hlo iota(Shape shape, int axis);                ///< I32

  Hlo unary(std::string_view op, const Hlo& x);                 ///< "stablehlo.exponential", ...
  Hlo binary(std::string_view op, const Hlo& a, const Hlo& b);  ///< equal shapes and types
  Hlo add(const Hlo& a, const Hlo& b) { return binary("stablehlo.add", a, b); }
  Hlo subtract(const Hlo& a, const Hlo& b) { return binary("stablehlo.subtract", a, b); }
  Hlo multiply(const Hlo& a, const Hlo& b) { return binary("stablehlo.multiply", a, b); }
  Hlo divide(const Hlo& a, const Hlo& b) { return binary("stablehlo.divide", a, b); }
  Hlo scale(const Hlo& x, float factor) { return multiply(x, splat(factor, x.shape)); }  ///< F32
  Hlo compare(std::string_view direction, const Hlo& a, const Hlo& b);                   ///< "LE", ... of I32
  Hlo select(const Hlo& condition, const Hlo& yes, const Hlo& no);

  Hlo convert(const Hlo& x, DType dtype);  ///< x itself where nothing changes
  Hlo reshape(const Hlo& x, Shape shape);  ///< x itself where nothing changes
  Hlo transpose(const Hlo& x, std::initializer_list<int> axes);
  /// Axis i of x becomes axis axes[i] of the result; the others repeat.
  Hlo broadcast(const Hlo& x, Shape shape, std::vector<int> axes);
  Hlo slice(const Hlo& x, int axis, int64_t begin, int64_t end);
  Hlo concatenate(const std::vector<Hlo>& parts, int axis);
  Hlo pad(const Hlo& x, const std::vector<int64_t>& low, const std::vector<int64_t>& high);  ///< with zeros
  /// Rows of `table` along `axis`; ids is I32 of any shape, which replaces the axis.
  Hlo take(const Hlo& table, const Hlo& ids, int axis);
  /// "stablehlo.add" or "stablehlo.maximum" over `axes`, which disappear. F32.
  Hlo reduce(std::string_view op, const Hlo& x, const std::vector<int>& axes);

  /// dot_general: batch axes first in the result, then a's free axes, then b's.
  struct Dot {
    std::vector<int> a_batch, b_batch, a_contract, b_contract;
  };
  Hlo dot(const Hlo& a, const Hlo& b, const Dot& axes, DType result);

  struct Convolution {
    int stride = 1;
    int top = 0, bottom = 0, left = 0, right = 0;  ///< padding
    int dilation = 1;                              ///< of x: zeros between pixels
  };
  /// x [B,H,W,Ci], weight [kh,kw,Ci,Co] -> [B,Ho,Wo,Co]
  Hlo convolution(const Hlo& x, const Hlo& weight, const Convolution& attributes);

  /// The module: `main` takes the arguments in order of their making and returns `results`.
  std::string module(const std::vector<Hlo>& results) const;

 private:
  Hlo emit(std::string_view op, const std::vector<Hlo>& operands, const std::string& attributes, Shape shape,
           DType dtype, const std::string& region = "");
  std::string precision() const;

  bool exact_;
  int next_ = 0;
  std::vector<Hlo> arguments_;
  std::string body_;
};

}  // namespace sfumato::pjrt
