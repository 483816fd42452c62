#define ROW kAttentionScalar
#define kLevel Isa::kScalar
#include "kernels/attention/attention.inl"
