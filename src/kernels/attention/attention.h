#pragma once
// Multi-head attention that never holds the whole score matrix (Milakov and Gimelshein 2018; Dao et al. 2022).
#include <cstddef>
#include <cstdint>

namespace sfumato::kernels {

enum class AttentionPrecision {
  kF32,   ///< float throughout
  kBF16,  ///< q, k, v and probabilities rounded to bfloat16, sums and softmax in float (for scores up to 4e6);
          ///< as kF32 below AVX512_BF16
};

/// q [batch,queries,heads*head_size], k and v [batch,keys,heads*head_size], out as q; rows are `*_stride` floats apart,
/// so that q, k and v may be slices of one buffer. out = softmax(scale q k^T) v for each head. causal: query i sees
/// keys 0..i, and there are as many keys as queries. A query's bits depend on nothing but its own row, the keys and
/// values.
struct AttentionArgs {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* out = nullptr;
  int64_t batch = 1, heads = 1, head_size = 64, queries = 0, keys = 0;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0;
  float scale = 1;
  bool causal = false;
  AttentionPrecision precision = AttentionPrecision::kF32;
};

/// `scratch` holds attention_scratch(args) bytes, aligned to 64.
void attention(const AttentionArgs& args, void* scratch);
/// With the threads, omp_get_max_threads(), and the instruction set that are to run it.
size_t attention_scratch(const AttentionArgs& args);

}  // namespace sfumato::kernels
