#pragma once
// Host bytes with a shape and a type. TensorView borrows (a mapped file, another tensor); Tensor owns.
#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/aligned.h"
#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace sfumato {

/// Borrowed, contiguous, row-major. The data need not be aligned when it comes from a file.
struct TensorView {
  const void* data = nullptr;
  Shape shape;
  DType dtype = DType::kF32;

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * dtype_size(dtype); }
  std::vector<float> to_floats() const {
    std::vector<float> out(static_cast<size_t>(shape.elements()));
    convert_to_f32(data, dtype, out.size(), out.data());
    return out;
  }
};

/// Owned, contiguous, row-major, 64-byte aligned. Moves, and copies on request only (clone).
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised.
  explicit Tensor(Shape shape, DType dtype = DType::kF32)
      : shape_(std::move(shape)),
        dtype_(dtype),
        data_(aligned_array<std::byte>(static_cast<size_t>(shape_.elements()) * dtype_size(dtype))) {
    if (!data_) throw std::bad_alloc();  // as any container does; the pipeline turns it into an Error
  }
  static Tensor zeros(Shape shape) {
    Tensor t(std::move(shape));
    for (float& x : t.f32()) x = 0;
    return t;
  }
  static Tensor from(Shape shape, std::span<const float> values) {
    Tensor t(std::move(shape));
    CHECK(values.size() == t.f32().size());
    std::copy(values.begin(), values.end(), t.f32().begin());
    return t;
  }
  Tensor clone() const {
    Tensor t(shape_, dtype_);
    std::copy_n(data_.get(), bytes(), t.data_.get());
    return t;
  }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t elements() const { return data_ ? shape_.elements() : 0; }
  size_t bytes() const { return static_cast<size_t>(elements()) * dtype_size(dtype_); }
  bool empty() const { return data_ == nullptr; }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  std::span<float> f32() { return typed<float, DType::kF32>(); }
  std::span<const float> f32() const { return const_cast<Tensor*>(this)->f32(); }
  std::span<int32_t> i32() { return typed<int32_t, DType::kI32>(); }
  std::span<const int32_t> i32() const { return const_cast<Tensor*>(this)->i32(); }
  TensorView view() const { return {data_.get(), shape_, dtype_}; }
  /// The same bytes under another shape of as many elements.
  Tensor reshaped(Shape shape) && {
    CHECK(shape.elements() == shape_.elements());
    shape_ = std::move(shape);
    return std::move(*this);
  }

 private:
  template <class T, DType kExpected>
  std::span<T> typed() {
    CHECK(dtype_ == kExpected, "tensor has another dtype");
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(elements())};
  }
  Shape shape_;
  DType dtype_ = DType::kF32;
  AlignedPtr<std::byte> data_;
};

}  // namespace sfumato
