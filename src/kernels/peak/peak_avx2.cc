#include "kernels/peak/peak.inl"

namespace sfumato::kernels {

const PeakRow kPeakAvx2{Isa::kAvx2, kFlops, run};

}  // namespace sfumato::kernels
