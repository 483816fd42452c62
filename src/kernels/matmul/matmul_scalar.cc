#define ROW kMatmulScalar
#define kLevel Isa::kScalar
#include "kernels/matmul/matmul.inl"
