#include "sampling/noise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <optional>
#include <random>

#include "base/check.h"

namespace sfumato::sampling {
namespace {

// PyTorch's block path takes logarithm, sine and cosine from the single-precision Cephes polynomials (Moshier), as its
// AVX2 build evaluates them: with fused multiply-adds. Written out here, so that the bits depend neither on the
// instruction set nor on the C library. The baseline is compiled without contraction; std::fma says where to fuse.

/// Natural logarithm of x in (0, 1].
float cephes_log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int>(bits >> 23) - 126);
  x = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // mantissa in [0.5, 1)
  const bool low = x < 0.707106781186547524f;
  const float once_more = low ? x : 0.0f;
  x -= 1.0f;
  if (low) e -= 1.0f;
  x += once_more;
  const float z = x * x;
  constexpr std::array kP = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                             -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                             2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  float y = kP[0];
  for (size_t i = 1; i < kP.size(); ++i) y = std::fma(y, x, kP[i]);
  y *= x;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(z, -0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

struct SinCos {
  float sin, cos;
};

/// Of x in [0, 2 pi].
SinCos cephes_sincos(float x) {
  const int octant = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
  const float y = static_cast<float>(octant);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f) * z;
  c = std::fma(c, z, -(z * 0.5f)) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f) * z;
  s = std::fma(s, x, x);
  if (octant & 2) std::swap(s, c);
  return {octant & 4 ? -s : s, (octant + 2) & 4 ? -c : c};
}

/// mt19937 seeded as torch.Generator does it; ATen's normal_() for float tensors.
class CpuGenerator final : public Generator {
 public:
  explicit CpuGenerator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  void normal(std::span<float> out) override {
    if (out.size() < 16) return scalar_path(out);
    for (float& v : out) v = uniform();
    for (size_t i = 0; i + 16 <= out.size(); i += 16) box_muller_16(out.data() + i);
    if (out.size() % 16 == 0) return;
    float* tail = out.data() + out.size() - 16;  // the last 16 are drawn anew, overlapping the block before
    for (int i = 0; i < 16; ++i) tail[i] = uniform();
    box_muller_16(tail);
  }

 private:
  float uniform() { return static_cast<float>(engine_() & 0xffffffu) * 0x1p-24f; }

  double uniform53() {
    const uint64_t high = engine_();
    return static_cast<double>(((high << 32) | engine_()) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  }

  static void box_muller_16(float* data) {
    for (int i = 0; i < 8; ++i) {
      const float radius = std::sqrt(-2.0f * cephes_log(1.0f - data[i]));
      const SinCos angle = cephes_sincos(2.0f * std::numbers::pi_v<float> * data[i + 8]);
      data[i] = radius * angle.cos;
      data[i + 8] = radius * angle.sin;
    }
  }

  /// Pairs in double precision; the second of a pair waits for the next number, also of a later call.
  void scalar_path(std::span<float> out) {
    for (float& v : out) {
      if (spare_) {
        v = static_cast<float>(*spare_);
        spare_.reset();
        continue;
      }
      const double u1 = uniform53(), u2 = uniform53();
      const double radius = std::sqrt(-2.0 * std::log1p(-u2)), angle = 2.0 * std::numbers::pi * u1;
      spare_ = radius * std::sin(angle);
      v = static_cast<float>(radius * std::cos(angle));
    }
  }

  std::mt19937 engine_;
  std::optional<double> spare_;
};

/// Philox4x32-10 (Salmon et al. 2011) in cuRAND's arrangement: the i-th number of the k-th call has the counter
/// (k, 0, i, 0) and takes the sine half of a Box-Muller pair.
class PhiloxGenerator final : public Generator {
 public:
  explicit PhiloxGenerator(uint64_t seed) : seed_(seed) {}

  void normal(std::span<float> out) override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = at(static_cast<uint32_t>(i));
    ++call_;
  }

 private:
  float at(uint32_t index) const {
    std::array<uint32_t, 4> c = {call_, 0, index, 0};
    uint32_t key0 = static_cast<uint32_t>(seed_), key1 = static_cast<uint32_t>(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{c[0]} * 0xD2511F53u, b = uint64_t{c[2]} * 0xCD9E8D57u;
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(a)};
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    constexpr float kInv = 0x1p-32f, kInvTwoPi = kInv * 2.0f * std::numbers::pi_v<float>;
    const float u = std::fma(static_cast<float>(c[0]), kInv, kInv / 2);  // single precision and fused, as on the GPU
    const float v = std::fma(static_cast<float>(c[1]), kInvTwoPi, kInvTwoPi / 2);
    return static_cast<float>(std::sqrt(-2.0 * std::log(double{u})) * std::sin(double{v}));
  }

  uint64_t seed_;
  uint32_t call_ = 0;
};

}  // namespace

std::unique_ptr<Generator> make_generator(RngKind kind, uint64_t seed) {
  if (kind == RngKind::kPhilox) return std::make_unique<PhiloxGenerator>(seed);
  return std::make_unique<CpuGenerator>(seed);
}

BatchNoise::BatchNoise(RngKind kind, std::span<const uint64_t> seeds) {
  for (uint64_t seed : seeds) generators_.push_back(make_generator(kind, seed));
}

void BatchNoise::operator()(std::span<float> out) {
  CHECK(!generators_.empty() && out.size() % generators_.size() == 0, "a batch of equal images");
  const size_t image = out.size() / generators_.size();
  for (size_t i = 0; i < generators_.size(); ++i) generators_[i]->normal(out.subspan(i * image, image));
}

}  // namespace sfumato::sampling
