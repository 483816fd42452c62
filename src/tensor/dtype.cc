#include "tensor/dtype.h"

#include <cstring>

#include "base/half.h"

namespace sfumato {
namespace {

struct DTypeRow {
  std::string_view name;
  size_t size;
};
constexpr DTypeRow kRows[] = {{"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
                              {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
                              {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};

template <class T>
T load(const void* data, size_t index) {
  T value;  // files give no alignment
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

size_t dtype_size(DType dtype) {
  return kRows[static_cast<int>(dtype)].size;
}
std::string_view dtype_name(DType dtype) {
  return kRows[static_cast<int>(dtype)].name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

double element_as_double(const void* data, DType dtype, size_t index) {
  switch (dtype) {
    case DType::kF64:
      return load<double>(data, index);
    case DType::kF32:
      return load<float>(data, index);
    case DType::kF16:
      return f16_to_f32(load<uint16_t>(data, index));
    case DType::kBF16:
      return bf16_to_f32(load<uint16_t>(data, index));
    case DType::kF8E4M3:
      return f8_e4m3fn_to_f32(load<uint8_t>(data, index));
    case DType::kF8E5M2:
      return f8_e5m2_to_f32(load<uint8_t>(data, index));
    case DType::kI64:
      return static_cast<double>(load<int64_t>(data, index));
    case DType::kI32:
      return load<int32_t>(data, index);
    case DType::kI16:
      return load<int16_t>(data, index);
    case DType::kI8:
      return load<int8_t>(data, index);
    case DType::kU64:
      return static_cast<double>(load<uint64_t>(data, index));
    case DType::kU32:
      return load<uint32_t>(data, index);
    case DType::kU16:
      return load<uint16_t>(data, index);
    case DType::kU8:
    case DType::kBool:
      return load<uint8_t>(data, index);
  }
  return 0;
}

void convert_to_f32(const void* source, DType dtype, size_t count, float* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, source, count * sizeof(float));
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(element_as_double(source, dtype, i));
}

}  // namespace sfumato
