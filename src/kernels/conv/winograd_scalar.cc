#define ROW kWinogradScalar
#define kLevel Isa::kScalar
#include "kernels/conv/winograd.inl"
