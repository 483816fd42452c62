#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace sfumato {

/// Extents, outermost first. The empty shape is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  /// Extent of axis `i`; negative counts from the end.
  int64_t operator[](int i) const { return dims_.at(static_cast<size_t>(i < 0 ? i + rank() : i)); }
  int64_t& operator[](int i) { return dims_.at(static_cast<size_t>(i < 0 ? i + rank() : i)); }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  std::string to_string() const;  ///< "2x77x768", "scalar"
  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

inline std::string Shape::to_string() const {
  if (dims_.empty()) return "scalar";
  std::string text;
  for (int64_t d : dims_) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

}  // namespace sfumato
