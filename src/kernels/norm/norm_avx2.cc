#define ROW kNormAvx2
#define kLevel Isa::kAvx2
#include "kernels/norm/norm.inl"
