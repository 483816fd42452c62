#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sfumato {

/// Element types, named as safetensors names them.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};

size_t dtype_size(DType dtype);                           ///< bytes an element
std::string_view dtype_name(DType dtype);                 ///< "F32", "BF16", "F8_E4M3", ...
std::optional<DType> parse_dtype(std::string_view name);  ///< the inverse of dtype_name
inline bool is_float(DType dtype) {
  return dtype <= DType::kF8E5M2;
}

/// Element `index` of `data`, as a double. Exact for every type but I64/U64 beyond 2^53.
double element_as_double(const void* data, DType dtype, size_t index);

/// Converts `count` elements of any type to float. F64 beyond float's range becomes infinity; callers that load
/// weights check for it.
void convert_to_f32(const void* source, DType dtype, size_t count, float* out);

}  // namespace sfumato
