#pragma once
// One block of memory for all intermediate values of a program, laid out by their lifetimes.
#include <cstddef>
#include <vector>

#include "base/aligned.h"

namespace sfumato::cpu {

/// A value's bytes, and the first and last step (inclusive) at which it must exist.
struct Lifetime {
  size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  ///< one a lifetime, multiples of 64
  size_t bytes = 0;             ///< the whole arena
};

/// Places large values first, each at the lowest offset at which no placed value that lives at the same time stands
/// (greedy by size: Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes);

/// Memory that grows to the largest request and is shared by the programs of one backend, of which one runs at a time.
class Arena {
 public:
  /// At least `bytes`, aligned to 64; null when out of memory. Earlier contents are lost.
  std::byte* reserve(size_t bytes);
  std::byte* data() const { return data_.get(); }
  size_t bytes() const { return size_; }

 private:
  AlignedPtr<std::byte> data_;
  size_t size_ = 0;
};

}  // namespace sfumato::cpu
