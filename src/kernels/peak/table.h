#pragma once
#include <cstdint>

#include "base/cpu.h"

namespace sfumato::kernels {

struct PeakRow {
  Isa isa;
  int flops_a_turn;  ///< of one turn of the loop
  void (*run)(int64_t turns);
};
extern const PeakRow kPeakScalar, kPeakAvx2, kPeakAvx512;

}  // namespace sfumato::kernels
