#include "backend/cpu/arena.h"

#include <algorithm>
#include <numeric>

namespace sfumato::cpu {

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

  ArenaPlan plan{std::vector<size_t>(lifetimes.size()), 0};
  std::vector<size_t> placed;  // by offset
  for (const size_t i : order) {
    const Lifetime& life = lifetimes[i];
    size_t offset = 0;
    for (const size_t other : placed) {
      const bool together = lifetimes[other].first <= life.last && life.first <= lifetimes[other].last;
      if (!together) continue;
      if (offset + round_up(life.bytes) <= plan.offsets[other]) break;  // fits in the gap before `other`
      offset = std::max(offset, plan.offsets[other] + round_up(lifetimes[other].bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + round_up(life.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](size_t at, size_t other) { return at < plan.offsets[other]; }),
                  i);
  }
  return plan;
}

std::byte* Arena::reserve(size_t bytes) {
  if (bytes > size_) {
    data_.reset();  // before the new block exists: never both
    data_ = aligned_array<std::byte>(bytes);
    size_ = data_ ? bytes : 0;
  }
  return data_.get();
}

}  // namespace sfumato::cpu
