#pragma once

namespace sfumato::kernels {

/// The most fp32 FLOP/s that `threads` threads reach with fused multiply-adds of the active level, on registers alone:
/// best of a few tries of some milliseconds. What benchmarks are a fraction of.
double fma_peak(int threads);

}  // namespace sfumato::kernels
