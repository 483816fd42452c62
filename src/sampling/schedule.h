#pragma once
// From a scheduler config to the noise levels that a sampler visits.
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sampling/names.h"
#include "sampling/scheduler_config.h"

namespace sfumato::sampling {

/// A noisy latent is alpha * image + sigma * noise. Samplers of k-diffusion's kind keep alpha = 1 ("variance
/// exploding"), those of DDPM's kind alpha^2 + sigma^2 = 1 ("variance preserving"); each keeps what its reference
/// keeps.
struct Level {
  double alpha = 1, sigma = 0;
  float timestep = 0;  ///< what the network is told, 0..num_train_timesteps - 1; may be fractional

  /// Noise to signal: k-diffusion's sigma. Infinite at zero terminal SNR.
  double ratio() const { return sigma / alpha; }
};

/// The model's noise level at every training timestep.
class NoiseTable {
 public:
  /// With `finite`, a last alpha of 0 (zero terminal SNR) is raised so that sigma is 4096 there, as diffusers does.
  explicit NoiseTable(const SchedulerConfig& config = {}, bool finite = true);

  int size() const { return static_cast<int>(alpha_bars_.size()); }
  /// Variance preserving level of a training timestep.
  Level at(int timestep) const;
  /// Noise to signal ratio, linear between the timesteps.
  double sigma(double timestep) const;
  /// The timestep of a ratio, linear in log sigma between the timesteps, kept within them.
  double timestep(double sigma) const;
  /// Whether sigma grows with the timestep and is finite (but perhaps for the last).
  bool usable() const;
  double min_sigma() const { return sigmas_.front(); }
  double max_sigma() const { return sigmas_.back(); }

 private:
  std::vector<float> alpha_bars_, sigmas_;
};

/// Everything a sampler needs to know but the latents.
struct Schedule {
  SamplerKind sampler = SamplerKind::kEuler;
  SchedulerConfig config;
  NoiseTable table;
  std::vector<Level> levels;       ///< steps + 1, noisiest first; the last is the image (or the smallest sigma)
  double init_noise_sigma = 1;     ///< unit noise times this is what text to image starts from
  int begin = 0;                   ///< steps left out at the start (image to image)
  std::vector<std::string> notes;  ///< advice for the person in front

  int steps() const { return static_cast<int>(levels.size()) - 1; }
  std::vector<float> timesteps() const;  ///< steps values
  std::vector<float> sigmas() const;     ///< steps + 1 ratios
  /// Where the first network pass happens: the level to which image to image noises its picture.
  const Level& start() const;
};

/// The levels for `steps` steps (1..num_train_timesteps) of a sampler. kModel follows the config.
Result<Schedule> make_schedule(const SchedulerConfig& config, SamplerKind sampler, ScheduleKind kind, int steps);

/// How many of `steps` image to image runs: steps * strength, rounded down, the product taken in double precision of
/// the shortest decimal that names `strength`. So 50 steps at 0.58 are 28, the number that diffusers gives.
int steps_to_run(int steps, float strength);

/// Leaves out the steps that `strength` (0..1) does not reach. None left is a usage error.
Result<void> truncate(Schedule& schedule, float strength);

}  // namespace sfumato::sampling
