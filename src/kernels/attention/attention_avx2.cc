#define ROW kAttentionAvx2
#define kLevel Isa::kAvx2
#include "kernels/attention/attention.inl"
