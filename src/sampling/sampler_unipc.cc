// UniPC (Zhao et al. 2023) as UniPCMultistepScheduler: predict the next latents, and correct them with the prediction
// made there.
#include <algorithm>
#include <deque>

#include "base/check.h"
#include "sampling/run.h"

namespace sfumato::sampling {
namespace {

constexpr int kMaxOrder = 3;

struct Past {
  Level level;
  Vector image;
};

/// Solves sum_k nodes[k]^i * w[k] = b[i], i = 0..size-1, by elimination with pivoting.
std::array<double, kMaxOrder> solve_vandermonde(const std::array<double, kMaxOrder>& nodes,
                                                std::array<double, kMaxOrder> b, int size) {
  double m[kMaxOrder][kMaxOrder];
  for (int i = 0; i < size; ++i)
    for (int k = 0; k < size; ++k) m[i][k] = std::pow(nodes[k], i);
  for (int col = 0; col < size; ++col) {
    int pivot = col;
    for (int i = col + 1; i < size; ++i)
      if (std::fabs(m[i][col]) > std::fabs(m[pivot][col])) pivot = i;
    std::swap(m[pivot], m[col]);
    std::swap(b[pivot], b[col]);
    for (int i = col + 1; i < size; ++i) {
      const double factor = m[i][col] / m[col][col];
      for (int k = col; k < size; ++k) m[i][k] -= factor * m[col][k];
      b[i] -= factor * b[col];
    }
  }
  std::array<double, kMaxOrder> w{};
  for (int i = size - 1; i >= 0; --i) {
    w[i] = b[i];
    for (int k = i + 1; k < size; ++k) w[i] -= m[i][k] * w[k];
    w[i] /= m[i][i];
  }
  return w;
}

/// One update from past[0] to `to`, of the given order, with the `order - 1` images before it; with `arrived`, the
/// image predicted at `to` joins them (corrector). Reads x at past[0], writes out.
void update(const Run& run, std::span<const float> x, const std::deque<Past>& past, const Level& to, int order,
            const Vector* arrived, std::span<float> out) {
  const Level& from = past[0].level;
  const double q = to.ratio() / from.ratio(), h = -std::log(q), grown = q - 1;  // expm1(-h)
  assign(out, Term{to.sigma / from.sigma, x}, Term{-to.alpha * grown, past[0].image});
  if (to.sigma == 0 || !(h > 0)) return;

  std::array<double, kMaxOrder> nodes{}, b{};
  const double scale = run.schedule.config.solver_bh1 ? -h : grown;
  double phi = grown / -h - 1, factorial = 1;
  for (int i = 0; i < order; ++i) {
    nodes[i] = i + 1 < order ? std::log(from.ratio() / past[i + 1].level.ratio()) / h : 1;
    b[i] = phi * factorial / scale;
    factorial *= i + 2;
    phi = phi / -h - 1 / factorial;
  }
  const int unknowns = arrived ? order : order - 1;
  const bool fixed = order == (arrived ? 1 : 2);  // the first-order corrector and the second-order predictor take 1/2
  const auto w = fixed ? std::array<double, kMaxOrder>{0.5} : solve_vandermonde(nodes, b, unknowns);
  const double gain = -to.alpha * scale;
  for (int k = 0; k < unknowns; ++k) {
    const bool last = arrived && k == order - 1;
    const Vector& image = last ? *arrived : past[k + 1].image;
    const double weight = gain * w[k] / nodes[k];
    assign(out, Term{1, out}, Term{weight, image}, Term{-weight, past[0].image});
  }
}

}  // namespace

Result<void> unipc(Run& run) {
  const SchedulerConfig& c = run.schedule.config;
  std::deque<Past> past;  // newest first
  Vector image = run.vector(), start = run.vector();
  int order = 0;  // of the step before
  for (int i = run.begin(); i < run.steps(); ++i) {
    const Level& here = run.level(i);
    TRY(run.denoise(run.x, here, image));
    const bool correct =
        std::find(c.disable_corrector.begin(), c.disable_corrector.end(), i - 1) == c.disable_corrector.end();
    if (order > 0 && correct) update(run, start, past, here, order, &image, run.x);

    if (!past.empty() && !(here.ratio() < past[0].level.ratio())) past.clear();  // equal levels: nothing to extrapolate
    past.push_front({here, image});
    if (past.size() > kMaxOrder) past.pop_back();
    order = std::min(c.solver_order, static_cast<int>(past.size()));
    if (c.lower_order_final) order = std::min(order, run.steps() - i);
    assign(start, Term{1, run.x});
    update(run, start, past, run.level(i + 1), order, nullptr, run.x);
    TRY(run.report(i, image));
  }
  return {};
}

}  // namespace sfumato::sampling
