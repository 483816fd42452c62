#include "kernels/peak/peak.h"

#include <omp.h>

#include <algorithm>

#include "kernels/isa.h"
#include "kernels/peak/table.h"

namespace sfumato::kernels {

double fma_peak(int threads) {
  static constexpr const PeakRow* kRows[] = {&kPeakScalar, &kPeakAvx2, &kPeakAvx512};
  const PeakRow& row = select(kRows);
  constexpr int kTries = 5;
  constexpr int64_t kTurns = 2'000'000;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    double seconds = 0;
#pragma omp parallel num_threads(threads) reduction(max : seconds)
    {
      const double begin = omp_get_wtime();
      row.run(kTurns);
      seconds = omp_get_wtime() - begin;
    }
    best = std::max(best, static_cast<double>(row.flops_a_turn) * kTurns * threads / seconds);
  }
  return best;
}

}  // namespace sfumato::kernels
