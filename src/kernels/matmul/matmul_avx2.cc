#define ROW kMatmulAvx2
#define kLevel Isa::kAvx2
#include "kernels/matmul/matmul.inl"
