#define ROW kNormScalar
#define kLevel Isa::kScalar
#include "kernels/norm/norm.inl"
