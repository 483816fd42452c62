#include "kernels/peak/peak.inl"

namespace sfumato::kernels {

const PeakRow kPeakAvx512{Isa::kAvx512, kFlops, run};

}  // namespace sfumato::kernels
