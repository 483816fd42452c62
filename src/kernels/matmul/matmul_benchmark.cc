// Packed products beside oneDNN's, in turn, at the shapes of Stable Diffusion at 512x512. With geglu ours applies the
// gate, oneDNN's stops at the sums. `ratio`: oneDNN's least time over ours.
#include "kernels/matmul/matmul.h"

#include "kernels/onednn_benchmark.h"

namespace sfumato::kernels {
namespace {

void matmul(benchmark::State& state) {
  MatmulArgs a;
  a.rows = state.range(0), a.depth = a.a_stride = state.range(1), a.columns = state.range(2);
  a.end.geglu = state.range(3) != 0;
  a.out_stride = a.end.geglu ? a.columns / 2 : a.columns;
  std::vector<float> x = some_floats(a.rows * a.depth), w = some_floats(a.columns * a.depth);
  std::vector<float> bias = some_floats(a.columns), out(static_cast<size_t>(a.rows * a.columns));
  const auto weights =
      aligned_array<float>(static_cast<size_t>(packed_weights_floats(a.columns, a.depth, a.end.geglu)));
  CHECK(weights != nullptr);
  pack_weights(w.data(), DType::kF32, a.columns, a.depth, a.end.geglu, weights.get(), nullptr);
  a.a = x.data(), a.weights = weights.get(), a.out = out.data(), a.end.bias = bias.data();
  const auto scratch = aligned_array<std::byte>(matmul_scratch(a));
  CHECK(scratch != nullptr);

  using Tag = memory::format_tag;
  const memory::desc input({a.rows, a.depth}, kFloat, Tag::ab), output({a.rows, a.columns}, kFloat, Tag::ab);
  const memory::desc any({a.depth, a.columns}, kFloat, Tag::any), shift({1, a.columns}, kFloat, Tag::ab);
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(input, any, shift, output), engine());
  const OneDnn other(dnnl::matmul(chosen), {input, x.data()}, chosen.weights_desc(), {shift, bias.data()},
                     {output, out.data()});
  compare(
      state, 2.0 * static_cast<double>(a.rows * a.depth * a.columns), [&] { kernels::matmul(a, scratch.get()); },
      other);
}
BENCHMARK(matmul)
    ->ArgNames({"M", "K", "N", "geglu"})
    ->Args({4096, 320, 320, 0})
    ->Args({4096, 1280, 320, 0})
    ->Args({1024, 640, 640, 0})
    ->Args({1024, 2560, 640, 0})
    ->Args({77, 768, 768, 0})
    ->Args({4096, 320, 2560, 1})
    ->Args({1024, 640, 5120, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

}  // namespace
}  // namespace sfumato::kernels
