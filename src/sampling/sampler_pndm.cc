// Pseudo numerical methods (Liu et al. 2022) as PNDMScheduler: linear multistep on the predicted noise, in DDIM's
// steps.
#include <algorithm>
#include <deque>

#include "sampling/run.h"

namespace sfumato::sampling {
namespace {

class Pndm {
 public:
  explicit Pndm(Run& run) : run_(run), image_(run.vector()), mean_(run.vector()), kept_(run.vector()) {}

  Result<void> run() {
    const bool runge_kutta = !run_.schedule.config.skip_prk_steps && run_.begin() == 0 && run_.steps() >= 4;
    passes_ = runge_kutta ? run_.steps() + 9 : run_.steps() == 1 ? 1 : run_.steps() + 1 - run_.begin();
    int first = 0;
    if (runge_kutta) {
      for (; first < 3; ++first) TRY(runge_kutta_step(first));
      for (int i = first; i < run_.steps(); ++i) TRY(multistep(i));
      return {};
    }
    // The first step is done twice: Euler's, then again with the mean of both ends' predictions. diffusers lists the
    // second level twice for it, and lets image to image skip entries of that list; so it is here, to draw the same.
    for (int pass = run_.begin(); pass < run_.begin() + passes_; ++pass) {
      const int i = pass < 2 ? pass : pass - 1;
      TRY(pass == run_.begin() + 1 ? improve(i) : multistep(i));
    }
    return {};
  }

 private:
  Result<void> predict(const Level& level) {
    raw_.resize(run_.x.size());
    TRY(run_.predict(run_.x, level, raw_));
    run_.to_image(run_.x, level, raw_, image_);
    return {};
  }

  /// x = the step from `kept`, x at level `from`, to level `to` along the raw prediction `mean`.
  void step(std::span<const float> kept, const Level& from, const Level& to) {
    run_.to_noise(kept, from, mean_, eps_);
    const double alpha = to.alpha / from.alpha;
    assign(run_.x, Term{alpha, kept}, Term{to.sigma - from.sigma * alpha, eps_});
  }

  Result<void> done(int next) { return run_.report(++pass_, passes_, image_, next); }

  Result<void> multistep(int i) {
    TRY(predict(run_.level(i)));
    past_.push_front(raw_);
    if (past_.size() > 4) past_.pop_back();
    switch (past_.size()) {  // Adams-Bashforth
      case 1:
        assign(mean_, Term{1, past_[0]});
        break;
      case 2:
        assign(mean_, Term{3 / 2.0, past_[0]}, Term{-1 / 2.0, past_[1]});
        break;
      case 3:
        assign(mean_, Term{23 / 12.0, past_[0]}, Term{-16 / 12.0, past_[1]}, Term{5 / 12.0, past_[2]});
        break;
      default:
        assign(mean_, Term{55 / 24.0, past_[0]}, Term{-59 / 24.0, past_[1]}, Term{37 / 24.0, past_[2]},
               Term{-9 / 24.0, past_[3]});
    }
    assign(kept_, Term{1, run_.x});
    step(kept_, run_.level(i), run_.level(i + 1));
    return done(i + 1);
  }

  Result<void> improve(int i) {
    TRY(predict(run_.level(i)));
    assign(mean_, Term{0.5, raw_}, Term{0.5, past_[0]});
    step(kept_, run_.level(i - 1), run_.level(i));
    return done(i);
  }

  /// The classical four passes from level i to i + 1.
  Result<void> runge_kutta_step(int i) {
    const Level &from = run_.level(i), &to = run_.level(i + 1);
    const int half = run_.schedule.config.num_train_timesteps / run_.steps() / 2;
    const auto at = [&](float t) {
      return run_.schedule.table.at(std::clamp(static_cast<int>(t), 0, run_.schedule.table.size() - 1));
    };
    const Level middle = at(to.timestep + half);
    const Level reached[4] = {at(from.timestep - half), middle, to, to}, asked[4] = {from, middle, middle, to};
    constexpr double kShare[4] = {1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0};
    Vector sum = run_.vector();
    assign(kept_, Term{1, run_.x});
    for (int k = 0; k < 4; ++k) {
      TRY(predict(asked[k]));
      if (k == 0) past_.push_front(raw_);
      assign(sum, Term{1, sum}, Term{kShare[k], raw_});
      assign(mean_, Term{1, k < 3 ? raw_ : sum});
      step(kept_, from, reached[k]);
      TRY(done(i + 1));
    }
    return {};
  }

  Run& run_;
  Vector image_, mean_, kept_, raw_, eps_ = run_.vector();
  std::deque<Vector> past_;  // raw predictions, newest first
  int pass_ = 0, passes_ = 0;
};

}  // namespace

Result<void> pndm(Run& run) {
  return Pndm(run).run();
}

}  // namespace sfumato::sampling
