#include "weights/weight_source.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace sfumato {
namespace {

/// [O,I,1,1] and [O,I] hold the same numbers in the same order.
bool same_layout(const Shape& a, const Shape& b) {
  const auto trimmed = [](const Shape& s) {
    std::vector<int64_t> dims = s.dims();
    while (dims.size() > 2 && dims.back() == 1) dims.pop_back();
    return dims;
  };
  return trimmed(a) == trimmed(b);
}

/// "2 tensors missing: a, b" with at most a few names.
std::string list(const std::vector<std::string>& names, const std::string& what) {
  constexpr size_t kShown = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) shown.push_back(printable(names[i]));
  if (names.size() > kShown) shown.push_back(str("and ", names.size() - kShown, " more"));
  return str(names.size(), names.size() == 1 ? " tensor " : " tensors ", what, ": ", join(shown, ", "));
}

bool is_ignored(const std::string& name, const std::vector<std::string>& ignore) {
  return std::any_of(ignore.begin(), ignore.end(), [&](const std::string& part) {
    return part.ends_with('.') ? name.starts_with(part) : name.ends_with(part);
  });
}

}  // namespace

Param WeightLedger::require(const std::string& name, const Shape& shape) {
  used_.push_back(name);
  const std::optional<TensorView> found = source_->find(name);
  if (!found) {
    missing_.push_back(name);
    return {name, shape, DType::kF32};
  }
  if (!same_layout(found->shape, shape))
    misshaped_.push_back(str(name, " is ", found->shape.to_string(), ", expected ", shape.to_string()));
  else if (found->dtype != DType::kF32 && found->dtype != DType::kF16 && found->dtype != DType::kBF16)
    misshaped_.push_back(str(name, " is ", dtype_name(found->dtype), ", expected a float type"));
  return {name, shape, found->dtype};
}

Result<void> WeightLedger::finish(const std::string& component, const std::vector<std::string>& ignore) const {
  const std::set<std::string> used(used_.begin(), used_.end());
  std::vector<std::string> left;
  for (const std::string& name : source_->names())
    if (!used.count(name) && !is_ignored(name, ignore)) left.push_back(name);
  std::vector<std::string> faults;
  if (!missing_.empty()) faults.push_back(list(missing_, "missing"));
  if (!misshaped_.empty()) faults.push_back(list(misshaped_, "of the wrong shape or type"));
  if (!left.empty()) faults.push_back(list(left, "unexpected"));
  if (faults.empty()) return {};
  return input_error(str("[weights.", component, "] the weights do not fit the configuration: ", join(faults, "; ")));
}

}  // namespace sfumato
