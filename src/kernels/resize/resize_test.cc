#include "kernels/resize/resize.h"

#include "base/half.h"
#include "kernels/testing.h"

namespace sfumato::kernels {
namespace {

class Resize : public EachIsa {};
INSTANTIATE_EACH_ISA(Resize);

TEST_P(Resize, TakesTheFloorOfTheScaledIndex) {
  struct Case {
    int64_t h, w, out_h, out_w;
  };
  for (const Case c : {Case{1, 1, 1, 1}, {1, 1, 2, 2}, {3, 5, 6, 10}, {10, 10, 19, 19}, {7, 4, 7, 9}, {4, 6, 8, 11}})
    for (const int64_t channels : {1, 3, 16, 17}) {
      const std::vector<float> x = normal_floats(static_cast<size_t>(2 * c.h * c.w * channels), 1);
      std::vector<float> out(static_cast<size_t>(2 * c.out_h * c.out_w * channels));
      upsample_nearest(x.data(), 2, c.h, c.w, channels, c.out_h, c.out_w, out.data());
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; i < c.out_h; ++i)
          for (int64_t j = 0; j < c.out_w; ++j)
            for (int64_t k = 0; k < channels; ++k)
              ASSERT_EQ(out[((b * c.out_h + i) * c.out_w + j) * channels + k],
                        x[((b * c.h + i * c.h / c.out_h) * c.w + j * c.w / c.out_w) * channels + k])
                  << c.h << "x" << c.w << " to " << c.out_h << "x" << c.out_w << ", " << channels << " channels";
    }
}

TEST_P(Resize, DoublesAndRoundsToBfloat16) {
  for (const int64_t channels : {1, 5, 16, 33})
    for (const int64_t w : {1, 2, 3, 8}) {
      const std::vector<float> x = normal_floats(static_cast<size_t>(3 * w * channels), 1);
      std::vector<uint16_t> out(4 * x.size());
      upsample2x_to_bf16(x.data(), 3, w, channels, out.data());
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 2 * w; ++j)
          for (int64_t k = 0; k < channels; ++k)
            ASSERT_EQ(out[(i * 2 * w + j) * channels + k], f32_to_bf16(x[(i / 2 * w + j / 2) * channels + k]))
                << w << " wide, " << channels << " channels";
    }
}

}  // namespace
}  // namespace sfumato::kernels
