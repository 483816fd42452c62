#include "base/aligned.h"

#include <sys/mman.h>

#include <cstdlib>

namespace sfumato {

void AlignedDeleter::operator()(void* p) const {
  std::free(p);
}

void* aligned_alloc_bytes(size_t bytes) {
  constexpr size_t kHuge = size_t{2} << 20;
  const size_t alignment = bytes >= 2 * kHuge ? kHuge : 64;
  if (bytes == 0) bytes = 1;
  if (bytes > SIZE_MAX - alignment) return nullptr;
  const size_t rounded = round_up(bytes, alignment);
  void* p = std::aligned_alloc(alignment, rounded);
  if (p && alignment == kHuge) madvise(p, rounded, MADV_HUGEPAGE);  // a hint: failure costs speed only
  return p;
}

}  // namespace sfumato
