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
           std::span<float> out) {
  CHECK(conditional.size() == out.size() && unconditional.size() == out.size(), "equal sizes");
  const double wanted = rescale > 0 ? deviation(conditional) : 0;
  for (size_t i = 0; i < out.size(); ++i) out[i] = unconditional[i] + scale * (conditional[i] - unconditional[i]);
  const double reached = rescale > 0 ? deviation(out) : 0;
  if (reached == 0) return;
  const auto factor = static_cast<float>(rescale * wanted / reached + (1 - rescale));
  for (float& v : out) v *= factor;
}

}  // namespace sfumato::sampling
