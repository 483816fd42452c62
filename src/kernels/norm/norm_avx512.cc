#define ROW kNormAvx512
#define kLevel Isa::kAvx512
#include "kernels/norm/norm.inl"
