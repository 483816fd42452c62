#pragma once
// Choosing a table row by instruction set.
#include "base/check.h"
#include "base/cpu.h"

namespace sfumato::kernels {

/// The last of `rows` (ascending levels, the first kScalar) that active_isa() reaches. A row has a member `isa`.
template <class Row, int kCount>
const Row& select(const Row* const (&rows)[kCount]) {
  const Row* best = rows[0];
  for (const Row* row : rows)
    if (row->isa <= active_isa()) best = row;
  CHECK(best->isa <= active_isa());
  return *best;
}

}  // namespace sfumato::kernels
