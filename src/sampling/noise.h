#pragma once
// Seeded normal noise with the very numbers that PyTorch draws, on every machine.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/names.h"

namespace sfumato::sampling {

/// A stream of standard normal numbers. What one call draws depends on its length, as it does in PyTorch: two calls of
/// 8 differ from one of 16.
class Generator {
 public:
  virtual ~Generator() = default;
  virtual void normal(std::span<float> out) = 0;
};

/// Of a 64-bit seed the cpu kind uses the low 32 bits only (so seed and seed + 2^32 agree), as PyTorch does.
std::unique_ptr<Generator> make_generator(RngKind kind, uint64_t seed);

/// Noise for a batch: one generator an image, so that image i equals the single image of seed + i bit for bit.
class BatchNoise {
 public:
  BatchNoise(RngKind kind, std::span<const uint64_t> seeds);
  /// Fills `out`, the images of the batch back to back.
  void operator()(std::span<float> out);

 private:
  std::vector<std::shared_ptr<Generator>> generators_;  // shared: a std::function must be able to copy this
};

}  // namespace sfumato::sampling
