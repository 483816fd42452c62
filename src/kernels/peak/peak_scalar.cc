#include "kernels/peak/peak.inl"

namespace sfumato::kernels {

const PeakRow kPeakScalar{Isa::kScalar, kFlops, run};

}  // namespace sfumato::kernels
