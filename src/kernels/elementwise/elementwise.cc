#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/table.h"

namespace sfumato::kernels {
namespace {

constexpr int64_t kPart = 4096;  // elements a thread takes at a time

const ElementwiseRow& table() {
  static constexpr const ElementwiseRow* kRows[] = {&kElementwiseScalar, &kElementwiseAvx2, &kElementwiseAvx512};
  return select(kRows);
}

/// body(begin, count) over parts of [0, total), in parallel where that pays.
template <class Body>
void parallel_parts(int64_t total, int64_t part, Body body) {
  const int64_t parts = (total + part - 1) / part;
#pragma omp parallel for schedule(static) if (parts > 4)
  for (int64_t p = 0; p < parts; ++p) body(p * part, std::min(part, total - p * part));
}

void widen(const ElementwiseRow& row, const void* source, DType dtype, int64_t count, float* out) {
  switch (dtype) {
    case DType::kF16:
      return row.f16_to_f32(source, count, out);
    case DType::kBF16:
      return row.bf16_to_f32(source, count, out);
    case DType::kF32:
      std::memcpy(out, source, static_cast<size_t>(count) * sizeof(float));
      return;
    default:
      CHECK(false, "a weight of a type that kernels do not read");
  }
}

}  // namespace

void unary(UnaryOp op, const float* x, int64_t count, float* out) {
  const ElementwiseRow& row = table();
  parallel_parts(count, kPart, [&](int64_t at, int64_t n) { row.unary(op, x + at, n, out + at); });
}

void geglu(const float* x, int64_t rows, int64_t channels, float* out) {
  const ElementwiseRow& row = table();
  parallel_parts(rows, 1 + kPart / channels, [&](int64_t at, int64_t n) {
    for (int64_t r = at; r < at + n; ++r) row.geglu(x + 2 * r * channels, channels, out + r * channels);
  });
}

void scale(const float* x, int64_t count, float factor, float* out) {
  const ElementwiseRow& row = table();
  parallel_parts(count, kPart, [&](int64_t at, int64_t n) { row.scale(x + at, n, factor, out + at); });
}

void binary(BinaryOp op, const float* a, const float* b, const int64_t dims[4], const int64_t b_dims[4], float* out) {
  const ElementwiseRow& row = table();
  bool same = true;
  for (int i = 0; i < 4; ++i) same = same && dims[i] == b_dims[i];
  if (same) {
    parallel_parts(dims[0] * dims[1] * dims[2] * dims[3], kPart,
                   [&](int64_t at, int64_t n) { row.binary(op, a + at, b + at, false, n, out + at); });
    return;
  }
  const int64_t inner = dims[3];
  parallel_parts(dims[0] * dims[1] * dims[2], 1 + kPart / inner, [&](int64_t at, int64_t n) {
    for (int64_t r = at; r < at + n; ++r) {
      const int64_t i0 = r / (dims[1] * dims[2]), i1 = r / dims[2] % dims[1], i2 = r % dims[2];
      const int64_t b_row = ((i0 % b_dims[0]) * b_dims[1] + i1 % b_dims[1]) * b_dims[2] + i2 % b_dims[2];
      row.binary(op, a + r * inner, b + b_row * b_dims[3], b_dims[3] == 1, inner, out + r * inner);
    }
  });
}

void copy_rows(const float* x, int64_t x_stride, int64_t rows, int64_t width, float* out, int64_t out_stride) {
  parallel_parts(rows, 1 + kPart / width, [&](int64_t at, int64_t n) {
    for (int64_t r = at; r < at + n; ++r)
      std::memcpy(out + r * out_stride, x + r * x_stride, static_cast<size_t>(width) * sizeof(float));
  });
}

void embedding(const int32_t* ids, int64_t count, const void* table_data, DType dtype, int64_t channels, float* out) {
  const ElementwiseRow& row = table();
  for (int64_t i = 0; i < count; ++i) {
    const size_t offset = static_cast<size_t>(ids[i]) * static_cast<size_t>(channels) * dtype_size(dtype);
    widen(row, static_cast<const char*>(table_data) + offset, dtype, channels, out + i * channels);
  }
}

void gather_row(const float* x, const int32_t* index, int64_t batch, int64_t rows, int64_t channels, float* out) {
  for (int64_t b = 0; b < batch; ++b)
    std::memcpy(out + b * channels, x + (b * rows + index[b]) * channels,
                static_cast<size_t>(channels) * sizeof(float));
}

void timestep_embedding(const float* t, int64_t count, int64_t dim, bool cos_first, float shift, float max_period,
                        float* out) {
  const int64_t half = dim / 2;
  const float slope = -static_cast<float>(std::log(double{max_period}));
  for (int64_t i = 0; i < count; ++i) {
    float* row = out + i * dim;
    float* cosines = row + (cos_first ? 0 : half);
    float* sines = row + (cos_first ? half : 0);
    for (int64_t k = 0; k < half; ++k) {
      const float exponent = slope * static_cast<float>(k) / (static_cast<float>(half) - shift);
      const float frequency = static_cast<float>(std::exp(double{exponent}));
      const float angle = t[i] * frequency;
      cosines[k] = static_cast<float>(std::cos(double{angle}));
      sines[k] = static_cast<float>(std::sin(double{angle}));
    }
    if (dim % 2 == 1) row[dim - 1] = 0;
  }
}

void convert_to_f32(const void* source, DType dtype, int64_t count, float* out) {
  const ElementwiseRow& row = table();
  parallel_parts(count, kPart, [&](int64_t at, int64_t n) {
    widen(row, static_cast<const char*>(source) + static_cast<size_t>(at) * dtype_size(dtype), dtype, n, out + at);
  });
}

void convert_to_bf16(const void* source, DType dtype, int64_t count, uint16_t* out) {
  const ElementwiseRow& row = table();
  parallel_parts(count, kPart, [&](int64_t at, int64_t n) {
    const void* from = static_cast<const char*>(source) + static_cast<size_t>(at) * dtype_size(dtype);
    if (dtype == DType::kF32) return row.f32_to_bf16(from, n, out + at);
    if (dtype == DType::kBF16) {
      std::memcpy(out + at, from, static_cast<size_t>(n) * 2);
      return;
    }
    float wide[kPart];
    widen(row, from, dtype, n, wide);
    row.f32_to_bf16(wide, n, out + at);
  });
}

}  // namespace sfumato::kernels
