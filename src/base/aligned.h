#pragma once
// 64-byte aligned memory, owned.
#include <cstddef>
#include <memory>

namespace sfumato {

struct AlignedDeleter {
  void operator()(void* p) const;
};
template <class T>
using AlignedPtr = std::unique_ptr<T[], AlignedDeleter>;

/// The least multiple of `step` (64: a cache line) that holds `bytes`.
constexpr size_t round_up(size_t bytes, size_t step = 64) {
  return (bytes + step - 1) / step * step;
}

/// `bytes` uninitialised bytes aligned to 64, or null when there are none to be had. Blocks of 4 MiB and more
/// ask for huge pages.
void* aligned_alloc_bytes(size_t bytes);

/// `count` uninitialised elements; null when out of memory.
template <class T>
AlignedPtr<T> aligned_array(size_t count) {
  return AlignedPtr<T>(static_cast<T*>(aligned_alloc_bytes(count * sizeof(T))));
}

}  // namespace sfumato
