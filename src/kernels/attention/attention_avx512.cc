#define ROW kAttentionAvx512
#define kLevel Isa::kAvx512
#include "kernels/attention/attention.inl"
