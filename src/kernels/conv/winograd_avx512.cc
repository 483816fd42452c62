#define ROW kWinogradAvx512
#define kLevel Isa::kAvx512
#include "kernels/conv/winograd.inl"
