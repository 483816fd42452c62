#pragma once
// The activation functions over Vec, for kernels that apply one to what they have just computed.
#include "kernels/elementwise/elementwise.h"
#include "kernels/simd.h"

namespace sfumato::kernels {
namespace {

struct Silu {
  Vec operator()(Vec x) const { return x * sigmoid(x); }
};
struct Gelu {
  Vec operator()(Vec x) const { return gelu(x); }
};
struct GeluTanh {
  Vec operator()(Vec x) const { return 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x))); }
};
struct QuickGelu {
  Vec operator()(Vec x) const { return x * sigmoid(1.702f * x); }
};
struct Relu {
  Vec operator()(Vec x) const { return max(Vec{}, x); }
};
struct Tanh {
  Vec operator()(Vec x) const { return tanh(x); }
};

[[maybe_unused]] inline Vec activate(UnaryOp op, Vec x) {
  switch (op) {
    case UnaryOp::kSilu:
      return Silu{}(x);
    case UnaryOp::kGelu:
      return Gelu{}(x);
    case UnaryOp::kGeluTanh:
      return GeluTanh{}(x);
    case UnaryOp::kQuickGelu:
      return QuickGelu{}(x);
    case UnaryOp::kRelu:
      return Relu{}(x);
    case UnaryOp::kTanh:
      return Tanh{}(x);
  }
  return x;
}

}  // namespace
}  // namespace sfumato::kernels
