#pragma once
namespace sfumato::sampling {

/// The q-quantile (0..1) of the symmetric Beta(a, a) distribution, a > 0, to about 1e-14.
double beta_quantile(double q, double a);

}  // namespace sfumato::sampling
