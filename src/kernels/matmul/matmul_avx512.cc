#define ROW kMatmulAvx512
#define kLevel Isa::kAvx512
#include "kernels/matmul/matmul.inl"
