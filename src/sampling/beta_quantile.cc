#include "sampling/beta_quantile.h"

#include <cmath>
#include <initializer_list>

namespace sfumato::sampling {
namespace {

/// Continued fraction of the incomplete beta function (DLMF 8.17.22) by Lentz's method, for x <= 1/2.
double beta_fraction(double x, double a) {
  constexpr double kTiny = 1e-300;
  const auto nonzero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / nonzero(1 - 2 * a * x / (a + 1)), value = d;
  for (int m = 1; m <= 200; ++m) {
    const double even = m * (a - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (2 * a + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / nonzero(1 + term * d);
      c = nonzero(1 + term / c);
      change = c * d;
      value *= change;
    }
    if (std::fabs(change - 1) < 1e-16) break;
  }
  return value;
}

/// Regularised incomplete beta function I_x(a, a).
double beta_cdf(double x, double a) {
  if (x > 0.5) return 1 - beta_cdf(1 - x, a);
  const double log_front = std::lgamma(2 * a) - 2 * std::lgamma(a) + a * std::log(x) + a * std::log1p(-x);
  return std::exp(log_front) * beta_fraction(x, a) / a;
}

}  // namespace

double beta_quantile(double q, double a) {
  if (q <= 0) return 0;
  if (q >= 1) return 1;
  if (q > 0.5) return 1 - beta_quantile(1 - q, a);
  double low = 0, high = 0.5;
  for (int i = 0; i < 100 && high - low > 1e-16; ++i) {
    const double middle = (low + high) / 2;
    (beta_cdf(middle, a) < q ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace sfumato::sampling
