#define ROW kElementwiseScalar
#define kLevel Isa::kScalar
#include "kernels/elementwise/elementwise.inl"
