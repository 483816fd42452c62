#include "sampling/guidance.h"

#include <cmath>

#include "base/check.h"

namespace sfumato::sampling {
namespace {

double deviation(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (float v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace

void guide(std::span<const float> conditional, std::span<const float> unconditional, float scale, float rescale,
           int images, std::span<float> out) {
  CHECK(
      images > 0 && out.size() % images == 0 && conditional.size() == out.size() && unconditional.size() == out.size(),
      "equal batches");
  const size_t size = out.size() / images;
  for (size_t first = 0; first < out.size(); first += size) {
    const double wanted = rescale > 0 ? deviation(conditional.subspan(first, size)) : 0;
    for (size_t i = first; i < first + size; ++i)
      out[i] = unconditional[i] + scale * (conditional[i] - unconditional[i]);
    if (!(rescale > 0)) continue;
    const double reached = deviation(out.subspan(first, size));
    if (reached == 0) continue;
    const auto factor = static_cast<float>(rescale * wanted / reached + (1 - rescale));
    for (size_t i = first; i < first + size; ++i) out[i] *= factor;
  }
}

}  // namespace sfumato::sampling
