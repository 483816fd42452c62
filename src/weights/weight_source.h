#pragma once
// Where a component's tensors come from: files, or another source with changes on top.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace sfumato {

/// Named tensors. Views stay valid as long as the source lives.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::optional<TensorView> find(const std::string& name) const = 0;
  virtual std::vector<std::string> names() const = 0;
  /// What tells these weights from others, found without reading them whole.
  virtual std::string identity() const { return ""; }
  /// The caller has its own copy of `view` and will hardly read it again: mapped pages may leave memory.
  virtual void release(const TensorView& view) const { (void)view; }
};

/// A tensor of the checkpoint that a model uses.
struct Param {
  std::string name;  ///< full name in the source; empty for an absent optional tensor
  Shape shape;       ///< as the model expects it
  DType dtype = DType::kF32;
};

/// Notes what a model asked for, so that missing, mis-shaped and left-over tensors can be named all at once.
class WeightLedger {
 public:
  explicit WeightLedger(const WeightSource& source) : source_(&source) {}
  /// Looks `name` up and compares shapes; a fault is noted, not returned. 1x1 convolution weights and Linear weights
  /// of equal extents ([O,I,1,1] and [O,I]) stand for each other.
  Param require(const std::string& name, const Shape& shape);
  bool has(const std::string& name) const { return source_->find(name).has_value(); }
  /// "[weights.NAME] 2 tensors missing: a, b; 1 has the wrong shape: c is 3x4, expected 4x3; ..." or ok.
  /// Tensors that no model asked for are named too; `ignore` are ends of names that may be left over, or
  /// beginnings where they end in a dot.
  Result<void> finish(const std::string& component, const std::vector<std::string>& ignore = {"position_ids"}) const;

 private:
  const WeightSource* source_;
  std::vector<std::string> used_, missing_, misshaped_;
};

/// A ledger seen under a prefix: view / "down_blocks" / 0 / "resnets". Cheap to copy.
class WeightView {
 public:
  explicit WeightView(WeightLedger& ledger, std::string prefix = "") : ledger_(&ledger), prefix_(std::move(prefix)) {}
  WeightView operator/(const std::string& part) const { return WeightView(*ledger_, prefix_ + part + "."); }
  WeightView operator/(int index) const { return *this / std::to_string(index); }
  Param require(const std::string& name, const Shape& shape) const { return ledger_->require(prefix_ + name, shape); }
  bool has(const std::string& name) const { return ledger_->has(prefix_ + name); }

 private:
  WeightLedger* ledger_;
  std::string prefix_;
};

}  // namespace sfumato
