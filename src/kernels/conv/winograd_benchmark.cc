// Winograd beside oneDNN's direct convolution, in turn, at the shapes of Stable Diffusion. `ratio`: oneDNN's least time
// over ours; GFLOP/s count the direct way's operations.
#include "kernels/conv/winograd.h"

#include "kernels/onednn_benchmark.h"

namespace sfumato::kernels {
namespace {

void winograd(benchmark::State& state) {
  WinogradArgs a;
  a.height = a.width = a.out_height = a.out_width = state.range(0);
  a.channels = state.range(1), a.out_channels = state.range(2);
  const int64_t pixels = a.height * a.width, taps = a.out_channels * a.channels * 9;
  std::vector<float> x = some_floats(pixels * a.channels), w = some_floats(taps), bias = some_floats(a.out_channels);
  std::vector<float> out(static_cast<size_t>(pixels * a.out_channels));
  const auto weights = aligned_array<float>(static_cast<size_t>(winograd_weights_floats(a.out_channels, a.channels)));
  const auto wide = aligned_array<std::byte>(winograd_weights_scratch(a.channels));
  CHECK(weights && wide);
  winograd_weights(w.data(), DType::kF32, a.out_channels, a.channels, weights.get(), wide.get());
  a.x = x.data(), a.weights = weights.get(), a.out = out.data(), a.bias = bias.data();
  const auto scratch = aligned_array<std::byte>(winograd_scratch(a));
  CHECK(scratch != nullptr);

  using Tag = memory::format_tag;
  const memory::desc input({1, a.channels, a.height, a.width}, kFloat, Tag::nhwc);
  const memory::desc output({1, a.out_channels, a.height, a.width}, kFloat, Tag::nhwc);
  const memory::desc any({a.out_channels, a.channels, 3, 3}, kFloat, Tag::any), shift({a.out_channels}, kFloat, Tag::x);
  const dnnl::convolution_forward::primitive_desc chosen(
      dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, input,
                                      any, shift, output, {1, 1}, {1, 1}, {1, 1}),
      engine());
  const OneDnn direct(dnnl::convolution_forward(chosen), {input, x.data()}, chosen.weights_desc(), {shift, bias.data()},
                      {output, out.data()});
  compare(
      state, 2.0 * static_cast<double>(pixels * taps), [&] { kernels::winograd(a, scratch.get()); }, direct);
}
BENCHMARK(winograd)
    ->ArgNames({"size", "Ci", "Co"})
    ->Args({64, 320, 320})  // SD1.5, 512x512
    ->Args({32, 640, 640})
    ->Args({16, 1280, 1280})
    ->Args({64, 512, 512})  // the autoencoder's decoder
    ->Args({256, 256, 256})
    ->Args({256, 128, 128})
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

}  // namespace
}  // namespace sfumato::kernels
