#define ROW kWinogradAvx2
#define kLevel Isa::kAvx2
#include "kernels/conv/winograd.inl"
