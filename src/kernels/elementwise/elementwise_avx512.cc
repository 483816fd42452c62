#define ROW kElementwiseAvx512
#define kLevel Isa::kAvx512
#include "kernels/elementwise/elementwise.inl"
