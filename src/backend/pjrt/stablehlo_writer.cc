#include "backend/pjrt/stablehlo_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/strings.h"

namespace sfumato::pjrt {
namespace {

std::string_view element_text(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kBool:
      return "i1";
    default:
      CHECK(false, "a type that programs do not compute with");
  }
}

/// The bits, which are exact and cover infinities.
std::string hex(float value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08X", std::bit_cast<uint32_t>(value));
  return text;
}

template <class Range>
std::string array(const Range& values) {
  return values.empty() ? "array<i64>" : "array<i64: " + join(values, ", ") + ">";
}

template <class Range>
std::string brackets(const Range& values) {
  return "[" + join(values, ", ") + "]";
}

std::string function_type(const std::vector<Hlo>& operands, const std::string& result) {
  std::vector<std::string> types;
  for (const Hlo& operand : operands) types.push_back(type_text(operand));
  return "(" + join(types, ", ") + ") -> " + result;
}

}  // namespace

std::string type_text(const Shape& shape, DType dtype) {
  std::string text = "tensor<";
  for (const int64_t d : shape.dims()) text += std::to_string(d) + "x";
  return text.append(element_text(dtype)) + ">";
}

Hlo StableHloWriter::argument(Shape shape, DType dtype) {
  arguments_.push_back({str("%arg", arguments_.size()), std::move(shape), dtype});
  return arguments_.back();
}

Hlo StableHloWriter::emit(std::string_view op, const std::vector<Hlo>& operands, const std::string& attributes,
                          Shape shape, DType dtype, const std::string& region) {
  Hlo out{str("%", next_++), std::move(shape), dtype};
  std::vector<std::string> names;
  for (const Hlo& operand : operands) names.push_back(operand.name);
  body_ += str("    ", out.name, " = \"", op, "\"(", join(names, ", "), ")", region,
               attributes.empty() ? "" : " {" + attributes + "}", " : ", function_type(operands, type_text(out)), "\n");
  return out;
}

Hlo StableHloWriter::splat(float value, Shape shape) {
  const std::string type = type_text(shape, DType::kF32);
  return emit("stablehlo.constant", {}, str("value = dense<", hex(value), "> : ", type), std::move(shape), DType::kF32);
}

Hlo StableHloWriter::constant(std::span<const float> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  std::vector<std::string> texts;
  for (const float value : values) texts.push_back(hex(value));
  return emit("stablehlo.constant", {}, str("value = dense<", brackets(texts), "> : ", type_text(shape, DType::kF32)),
              shape, DType::kF32);
}

Hlo StableHloWriter::constant(std::span<const int32_t> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return emit("stablehlo.constant", {}, str("value = dense<", brackets(values), "> : ", type_text(shape, DType::kI32)),
              shape, DType::kI32);
}

Hlo StableHloWriter::iota(Shape shape, int axis) {
  return emit("stablehlo.iota", {}, str("iota_dimension = ", axis, " : i64"), std::move(shape), DType::kI32);
}

Hlo StableHloWriter::unary(std::string_view op, const Hlo& x) {
  return emit(op, {x}, "", x.shape, x.dtype);
}

Hlo StableHloWriter::binary(std::string_view op, const Hlo& a, const Hlo& b) {
  CHECK(a.shape == b.shape && a.dtype == b.dtype, op);
  return emit(op, {a, b}, "", a.shape, a.dtype);
}

Hlo StableHloWriter::compare(std::string_view direction, const Hlo& a, const Hlo& b) {
  CHECK(a.shape == b.shape && a.dtype == b.dtype, "compare");
  return emit("stablehlo.compare", {a, b},
              str("comparison_direction = #stablehlo<comparison_direction ", direction, ">"), a.shape, DType::kBool);
}

Hlo StableHloWriter::select(const Hlo& condition, const Hlo& yes, const Hlo& no) {
  CHECK(condition.shape == yes.shape && yes.shape == no.shape && yes.dtype == no.dtype, "select");
  return emit("stablehlo.select", {condition, yes, no}, "", yes.shape, yes.dtype);
}

Hlo StableHloWriter::convert(const Hlo& x, DType dtype) {
  return x.dtype == dtype ? x : emit("stablehlo.convert", {x}, "", x.shape, dtype);
}

Hlo StableHloWriter::reshape(const Hlo& x, Shape shape) {
  CHECK(x.shape.elements() == shape.elements(), "reshape");
  return x.shape == shape ? x : emit("stablehlo.reshape", {x}, "", std::move(shape), x.dtype);
}

Hlo StableHloWriter::transpose(const Hlo& x, std::initializer_list<int> axes) {
  std::vector<int64_t> dims;
  for (const int axis : axes) dims.push_back(x.shape[axis]);
  return emit("stablehlo.transpose", {x}, "permutation = " + array(std::vector<int>(axes)), Shape(std::move(dims)),
              x.dtype);
}

Hlo StableHloWriter::broadcast(const Hlo& x, Shape shape, std::vector<int> axes) {
  return emit("stablehlo.broadcast_in_dim", {x}, "broadcast_dimensions = " + array(axes), std::move(shape), x.dtype);
}

Hlo StableHloWriter::slice(const Hlo& x, int axis, int64_t begin, int64_t end) {
  std::vector<int64_t> starts(x.shape.dims().size()), limits = x.shape.dims(), strides(x.shape.dims().size(), 1);
  starts[static_cast<size_t>(axis)] = begin;
  limits[static_cast<size_t>(axis)] = end;
  Shape shape = x.shape;
  shape[axis] = end - begin;
  if (shape == x.shape) return x;
  return emit(
      "stablehlo.slice", {x},
      str("start_indices = ", array(starts), ", limit_indices = ", array(limits), ", strides = ", array(strides)),
      std::move(shape), x.dtype);
}

Hlo StableHloWriter::concatenate(const std::vector<Hlo>& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Shape shape = parts[0].shape;
  for (size_t i = 1; i < parts.size(); ++i) shape[axis] += parts[i].shape[axis];
  return emit("stablehlo.concatenate", parts, str("dimension = ", axis, " : i64"), std::move(shape), parts[0].dtype);
}

Hlo StableHloWriter::pad(const Hlo& x, const std::vector<int64_t>& low, const std::vector<int64_t>& high) {
  const Hlo zero = convert(splat(0, {}), x.dtype);
  const std::vector<int64_t> interior(low.size());
  Shape shape = x.shape;
  for (size_t i = 0; i < low.size(); ++i) shape[static_cast<int>(i)] += low[i] + high[i];
  return emit("stablehlo.pad", {x, zero},
              str("edge_padding_low = ", array(low), ", edge_padding_high = ", array(high),
                  ", interior_padding = ", array(interior)),
              std::move(shape), x.dtype);
}

Hlo StableHloWriter::take(const Hlo& table, const Hlo& ids, int axis) {
  // The result: table's axes before `axis`, those of ids, table's axes after it.
  std::vector<int64_t> dims, slice_sizes = table.shape.dims();
  std::vector<int> offset_axes;
  slice_sizes[static_cast<size_t>(axis)] = 1;
  for (int i = 0; i < table.shape.rank(); ++i) {
    if (i == axis) {
      dims.insert(dims.end(), ids.shape.dims().begin(), ids.shape.dims().end());
      continue;
    }
    offset_axes.push_back(static_cast<int>(dims.size()));
    dims.push_back(table.shape[i]);
  }
  return emit("stablehlo.gather", {table, ids},
              str("dimension_numbers = #stablehlo.gather<offset_dims = ", brackets(offset_axes),
                  ", collapsed_slice_dims = [", axis, "], start_index_map = [", axis, "], index_vector_dim = ",
                  ids.shape.rank(), ">, slice_sizes = ", array(slice_sizes), ", indices_are_sorted = false"),
              Shape(std::move(dims)), table.dtype);
}

Hlo StableHloWriter::reduce(std::string_view op, const Hlo& x, const std::vector<int>& axes) {
  CHECK(x.dtype == DType::kF32, "reduce");
  const Hlo initial = splat(op == "stablehlo.add" ? 0.0f : -INFINITY, {});
  std::vector<int64_t> dims;
  for (int i = 0; i < x.shape.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(x.shape[i]);
  const std::string region =
      str(" ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %c = \"", op,
          "\"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32> \"stablehlo.return\"(%c) : (tensor<f32>) -> () })");
  return emit("stablehlo.reduce", {x, initial}, "dimensions = " + array(axes), Shape(std::move(dims)), x.dtype, region);
}

std::string StableHloWriter::precision() const {
  const std::string_view one = exact_ ? "#stablehlo<precision HIGHEST>" : "#stablehlo<precision DEFAULT>";
  return str("precision_config = [", one, ", ", one, "]");
}

Hlo StableHloWriter::dot(const Hlo& a, const Hlo& b, const Dot& axes, DType result) {
  const auto is_in = [](const std::vector<int>& list, int axis) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  std::vector<int64_t> dims;
  for (const int axis : axes.a_batch) dims.push_back(a.shape[axis]);
  for (int i = 0; i < a.shape.rank(); ++i)
    if (!is_in(axes.a_batch, i) && !is_in(axes.a_contract, i)) dims.push_back(a.shape[i]);
  for (int i = 0; i < b.shape.rank(); ++i)
    if (!is_in(axes.b_batch, i) && !is_in(axes.b_contract, i)) dims.push_back(b.shape[i]);
  std::string numbers;
  if (!axes.a_batch.empty())
    numbers = str("lhs_batching_dimensions = ", brackets(axes.a_batch),
                  ", rhs_batching_dimensions = ", brackets(axes.b_batch), ", ");
  numbers += str("lhs_contracting_dimensions = ", brackets(axes.a_contract),
                 ", rhs_contracting_dimensions = ", brackets(axes.b_contract));
  return emit("stablehlo.dot_general", {a, b},
              str("dot_dimension_numbers = #stablehlo.dot<", numbers, ">, ", precision()), Shape(std::move(dims)),
              result);
}

Hlo StableHloWriter::convolution(const Hlo& x, const Hlo& weight, const Convolution& c) {
  const auto extent = [&](int axis, int low, int high) {
    const int64_t dilated = (x.shape[axis] - 1) * c.dilation + 1;
    return (dilated + low + high - weight.shape[axis - 1]) / c.stride + 1;
  };
  const Shape shape{x.shape[0], extent(1, c.top, c.bottom), extent(2, c.left, c.right), weight.shape[3]};
  return emit("stablehlo.convolution", {x, weight},
              str("window_strides = array<i64: ", c.stride, ", ", c.stride, ">, padding = dense<[[", c.top, ", ",
                  c.bottom, "], [", c.left, ", ", c.right,
                  "]]> : tensor<2x2xi64>, lhs_dilation = array<i64: ", c.dilation, ", ", c.dilation,
                  ">, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, dimension_numbers = "
                  "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
                  "batch_group_count = 1 : i64, ",
                  precision()),
              shape, x.dtype);
}

std::string StableHloWriter::module(const std::vector<Hlo>& results) const {
  std::vector<std::string> arguments, names, types;
  for (const Hlo& argument : arguments_) arguments.push_back(argument.name + ": " + type_text(argument));
  for (const Hlo& result : results) {
    names.push_back(result.name);
    types.push_back(type_text(result));
  }
  return str("module @sfumato {\n  func.func public @main(", join(arguments, ", "), ") -> (", join(types, ", "),
             ") {\n", body_, "    \"func.return\"(", join(names, ", "), ") : (", join(types, ", "),
             ") -> ()\n  }\n}\n");
}

}  // namespace sfumato::pjrt
