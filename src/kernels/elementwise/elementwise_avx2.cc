#define ROW kElementwiseAvx2
#define kLevel Isa::kAvx2
#include "kernels/elementwise/elementwise.inl"
