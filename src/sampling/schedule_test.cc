#include "sampling/schedule.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/strings.h"
#include "sampling/beta_quantile.h"

namespace sfumato::sampling {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const SchedulerConfig kSd15;  // its defaults

Schedule euler(ScheduleKind kind, int steps, const SchedulerConfig& config = kSd15) {
  return make_schedule(config, SamplerKind::kEuler, kind, steps).value();
}

std::vector<float> ddim_timesteps(ScheduleKind kind, int steps) {
  return make_schedule(kSd15, SamplerKind::kDdim, kind, steps).value().timesteps();
}

// The numbers of Stable Diffusion's schedule, computed from first principles in double precision.
TEST(NoiseTable, StableDiffusion) {
  const NoiseTable table(kSd15);
  EXPECT_NEAR(std::pow(table.at(0).alpha, 2), 0.99915, 1e-7);
  EXPECT_NEAR(std::pow(table.at(999).alpha, 2), 0.0046600985, 1e-8);
  EXPECT_NEAR(table.sigma(0), 0.0291672, 1e-6);
  EXPECT_NEAR(table.sigma(999), 14.6146412, 1e-5);
  EXPECT_NEAR(std::hypot(table.max_sigma(), 1), 14.6488135, 1e-5);
  EXPECT_NEAR(table.sigma(1), 0.04131, 5e-6);
  for (double t : {0.0, 0.25, 500.0, 998.5, 999.0})
    EXPECT_NEAR(table.timestep(table.sigma(t)), t, 4e-2) << t;  // linear one way, in the logarithm the other
  EXPECT_EQ(table.timestep(1e-6), 0);
  EXPECT_EQ(table.timestep(1e6), 999);
}

TEST(NoiseTable, ZeroTerminalSnr) {
  SchedulerConfig c;
  c.rescale_betas_zero_snr = true;
  EXPECT_NEAR(NoiseTable(c).max_sigma(), 4096, 1e-3);
  EXPECT_EQ(NoiseTable(c, /*finite=*/false).at(999).alpha, 0);
  EXPECT_NEAR(NoiseTable(c).sigma(0), NoiseTable(kSd15).sigma(0), 1e-6);
  c.prediction_type = PredictionType::kV;
  EXPECT_EQ(make_schedule(c, SamplerKind::kDdim, ScheduleKind::kTrailing, 4).value().levels[0].alpha, 0);
  EXPECT_NEAR(make_schedule(c, SamplerKind::kEuler, ScheduleKind::kTrailing, 4).value().init_noise_sigma, 4096, 1e-3);
  c.prediction_type = PredictionType::kEpsilon;  // cannot say what the image is where there is only noise
  EXPECT_GT(make_schedule(c, SamplerKind::kDdim, ScheduleKind::kTrailing, 4).value().levels[0].alpha, 0);
}

TEST(Spacing, Tables) {
  using V = std::vector<float>;
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 1), V({1}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 2), V({501, 1}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 3), V({667, 334, 1}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 4), V({751, 501, 251, 1}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 9), V({889, 778, 667, 556, 445, 334, 223, 112, 1}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 13)[0], 913);
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kLeading, 30)[0], 958);
  EXPECT_EQ(euler(ScheduleKind::kLinspace, 1).timesteps(), V({0}));
  EXPECT_EQ(euler(ScheduleKind::kLinspace, 3).timesteps(), V({999, 499.5, 0}));
  EXPECT_EQ(euler(ScheduleKind::kLinspace, 9).timesteps()[1], 874.125f);
  EXPECT_NEAR(euler(ScheduleKind::kLinspace, 20).timesteps()[1], 946.421, 1e-3);
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kTrailing, 1), V({999}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kTrailing, 3), V({999, 666, 332}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kTrailing, 9), V({999, 888, 777, 666, 555, 443, 332, 221, 110}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kTrailing, 13),
            V({999, 922, 845, 768, 691, 614, 537, 461, 384, 307, 230, 153, 76}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kTrailing, 30).back(), 32);
}

TEST(Spacing, InitialNoise) {
  EXPECT_NEAR(euler(ScheduleKind::kLinspace, 20).init_noise_sigma, 14.61464, 1e-5);
  EXPECT_NEAR(euler(ScheduleKind::kTrailing, 20).init_noise_sigma, 14.61464, 1e-5);
  EXPECT_NEAR(euler(ScheduleKind::kLeading, 20).sigmas()[0], 11.0283, 5e-5);
  EXPECT_NEAR(euler(ScheduleKind::kLeading, 20).init_noise_sigma, 11.0736, 5e-5);
  EXPECT_NEAR(euler(ScheduleKind::kLeading, 30).init_noise_sigma, 11.5203, 5e-5);
  EXPECT_EQ(make_schedule(kSd15, SamplerKind::kDdim, ScheduleKind::kModel, 20).value().init_noise_sigma, 1);
}

// D1: a loop over floats steps once too often at 9, 11, 12, 18 ... (and numpy.arange at 61, 103 ...).
TEST(Spacing, EveryCountOfSteps) {
  for (const SamplerKind sampler : {SamplerKind::kEuler, SamplerKind::kDpmpp2M, SamplerKind::kDdim, SamplerKind::kPndm})
    for (const ScheduleKind kind : {ScheduleKind::kLeading, ScheduleKind::kLinspace, ScheduleKind::kTrailing,
                                    ScheduleKind::kSgmUniform, ScheduleKind::kSimple, ScheduleKind::kKarras})
      for (int n = 1; n <= 1000; ++n) {
        const auto s = make_schedule(kSd15, sampler, kind, n).value();
        const std::string what = str(sampler_name(sampler), " ", schedule_name(kind), " ", n);
        ASSERT_EQ(s.steps(), n) << what;
        for (int i = 0; i < n; ++i) {
          ASSERT_TRUE(s.levels[i].timestep >= 0 && s.levels[i].timestep <= 999) << what;
          ASSERT_TRUE(i == 0 || s.levels[i].timestep <= s.levels[i - 1].timestep) << what;
          ASSERT_GE(s.levels[i].ratio() * (1 + 1e-6), s.levels[i + 1].ratio()) << what;
        }
      }
}

TEST(Spacing, StepsOutOfRange) {
  for (const int steps : {-1, 0, 1001, 1 << 30}) {
    const auto result = make_schedule(kSd15, SamplerKind::kEuler, ScheduleKind::kModel, steps);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
  const auto lcm = make_schedule(kSd15, SamplerKind::kLcm, ScheduleKind::kModel, 51);
  ASSERT_FALSE(lcm);
  EXPECT_THAT(lcm.error().message, HasSubstr("at most 50"));
}

TEST(Spacing, DdimStepsToTheNextOfItsTimesteps) {  // D3
  const auto s = make_schedule(kSd15, SamplerKind::kDdim, ScheduleKind::kLinspace, 10).value();
  EXPECT_EQ(s.levels[0].timestep, 999);
  EXPECT_EQ(s.levels[1].timestep, 888);
  SchedulerConfig c;
  c.num_train_timesteps = 100;
  const auto five = make_schedule(c, SamplerKind::kDdim, ScheduleKind::kLinspace, 5).value();
  EXPECT_EQ(five.levels[0].timestep, 99);
  EXPECT_EQ(five.levels[1].timestep, 74);
}

TEST(Spacing, LeadingOfOtherTrainingLengths) {  // D5
  SchedulerConfig c;
  c.num_train_timesteps = 500;
  c.steps_offset = 0;
  EXPECT_EQ(make_schedule(c, SamplerKind::kDdim, ScheduleKind::kLeading, 300).value().timesteps()[0], 299);
}

TEST(Schedules, Karras) {
  const auto s = euler(ScheduleKind::kKarras, 10, [] {
    SchedulerConfig c;
    c.timestep_spacing = Spacing::kLinspace;
    return c;
  }());
  EXPECT_THAT(s.sigmas(), Pointwise(FloatNear(1.2e-5f), {14.61464, 9.10293, 5.47839, 3.16860, 1.74942, 0.91407, 0.44692,
                                                         0.20140, 0.08191, 0.02917, 0.0}));
  std::vector<float> rounded;
  for (float t : s.timesteps()) rounded.push_back(std::nearbyint(t));
  EXPECT_EQ(rounded, std::vector<float>({999, 916, 815, 687, 523, 327, 146, 41, 7, 0}));
}

TEST(Schedules, KarrasTimestepsThatCoincideKeepTheirSteps) {
  for (const auto& [steps, distinct] : {std::pair{20, 20}, {30, 30}, {50, 49}, {100, 95}}) {
    auto t = make_schedule(kSd15, SamplerKind::kDpmpp2M, ScheduleKind::kKarras, steps).value().timesteps();
    EXPECT_EQ(std::ssize(t), steps);
    EXPECT_EQ(std::unique(t.begin(), t.end()) - t.begin(), distinct);
  }
  SchedulerConfig cosine;  // D7
  cosine.beta_schedule = BetaSchedule::kSquaredCos;
  EXPECT_EQ(make_schedule(cosine, SamplerKind::kDpmpp2M, ScheduleKind::kKarras, 20).value().steps(), 20);
}

TEST(Schedules, OthersStartAtFullNoiseAndEndAtZero) {
  for (const ScheduleKind kind : {ScheduleKind::kExponential, ScheduleKind::kBeta, ScheduleKind::kSgmUniform,
                                  ScheduleKind::kSimple, ScheduleKind::kAlignYourSteps, ScheduleKind::kKlOptimal}) {
    const auto sigmas = make_schedule(kSd15, SamplerKind::kDpmpp2M, kind, 12).value().sigmas();
    EXPECT_NEAR(sigmas[0], 14.615, 5e-4) << schedule_name(kind);
    EXPECT_EQ(sigmas.back(), 0) << schedule_name(kind);
    for (size_t i = 1; i < sigmas.size(); ++i) EXPECT_LT(sigmas[i], sigmas[i - 1]) << schedule_name(kind);
  }
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kSgmUniform, 4), std::vector<float>({999, 749, 500, 250}));
  EXPECT_EQ(ddim_timesteps(ScheduleKind::kSimple, 4), std::vector<float>({999, 749, 499, 249}));
}

TEST(Schedules, ConfigDecidesUnlessAFlagSaysOtherwise) {
  SchedulerConfig c;
  c.sigmas = ScheduleKind::kKarras;
  c.timestep_spacing = Spacing::kTrailing;
  EXPECT_EQ(euler(ScheduleKind::kModel, 5, c).sigmas(), euler(ScheduleKind::kKarras, 5, c).sigmas());
  EXPECT_EQ(euler(ScheduleKind::kLeading, 5, c).timesteps(), euler(ScheduleKind::kLeading, 5).timesteps());
}

TEST(Schedules, LastLevel) {
  EXPECT_EQ(euler(ScheduleKind::kModel, 5).sigmas().back(), 0);  // D9
  SchedulerConfig c;
  c.set_alpha_to_one = false;
  EXPECT_NEAR(make_schedule(c, SamplerKind::kDdim, ScheduleKind::kModel, 5).value().sigmas().back(), 0.0291672, 1e-6);
  EXPECT_EQ(make_schedule(kSd15, SamplerKind::kDdim, ScheduleKind::kModel, 5).value().sigmas().back(), 0);
}

TEST(Schedules, FewStepsThatMissTheNoiseAreNoted) {  // D19
  EXPECT_THAT(euler(ScheduleKind::kLeading, 1).notes, ::testing::ElementsAre(HasSubstr("trailing")));
  EXPECT_EQ(euler(ScheduleKind::kTrailing, 1).timesteps()[0], 999);
  EXPECT_THAT(euler(ScheduleKind::kTrailing, 1).notes, ::testing::IsEmpty());
}

TEST(Schedules, TrainedBetas) {
  SchedulerConfig c;
  c.num_train_timesteps = 3;
  c.trained_betas = {0.1, 0.2, 0.3};
  const auto s = make_schedule(c, SamplerKind::kDdim, ScheduleKind::kTrailing, 3).value();
  EXPECT_NEAR(std::pow(s.levels[0].alpha, 2), 0.9 * 0.8 * 0.7, 1e-6);
  c.trained_betas = {1e-12, 1e-12, 1e-12};  // no noise at all in single precision
  EXPECT_EQ(make_schedule(c, SamplerKind::kEuler, ScheduleKind::kModel, 3).error().kind, ErrorKind::kBadInput);
  c.num_train_timesteps = 300;
  c.trained_betas.assign(300, 0.99);  // alpha underflows
  EXPECT_EQ(make_schedule(c, SamplerKind::kEuler, ScheduleKind::kModel, 3).error().kind, ErrorKind::kBadInput);
}

TEST(BetaQuantile, KnownValues) {
  EXPECT_EQ(beta_quantile(0, 0.6), 0);
  EXPECT_EQ(beta_quantile(1, 0.6), 1);
  EXPECT_NEAR(beta_quantile(0.5, 0.6), 0.5, 1e-12);
  EXPECT_NEAR(beta_quantile(0.25, 0.5), std::pow(std::sin(std::acos(-1.0) / 8), 2), 1e-12);  // arcsine distribution
  EXPECT_NEAR(beta_quantile(0.3, 1), 0.3, 1e-12);                                            // uniform
  EXPECT_NEAR(beta_quantile(0.9, 2), 1 - beta_quantile(0.1, 2), 1e-12);
}

TEST(ImageToImage, StepCounts) {  // oracle of the issue tracker's rules
  for (const auto& [steps, strength, count] : {std::tuple{15, 0.05f, 0},
                                               {20, 0.01f, 0},
                                               {1, 0.8f, 0},
                                               {2, 0.49f, 0},
                                               {2, 0.5f, 1},
                                               {4, 0.3f, 1},
                                               {10, 0.7f, 7},
                                               {30, 0.3f, 9},
                                               {50, 0.8f, 40},
                                               {50, 0.02f, 1},
                                               {50, 0.019f, 0},
                                               {50, 0.58f, 28},
                                               {100, 0.29f, 28},
                                               {100, 0.57f, 56},
                                               {20, 1.0f, 20},
                                               {20, 0.0f, 0}})
    EXPECT_EQ(steps_to_run(steps, strength), count) << steps << " * " << strength;
}

TEST(ImageToImage, Truncate) {
  auto s = euler(ScheduleKind::kModel, 50);
  ASSERT_TRUE(truncate(s, 0.8f));
  EXPECT_EQ(s.begin, 10);
  EXPECT_EQ(s.start().timestep, s.timesteps()[10]);
  ASSERT_TRUE(truncate(s, 1.0f));
  EXPECT_EQ(s.begin, 0);
  for (const float strength : {0.0f, 0.019f, -0.1f, 1.1f, std::nanf("")}) {  // D17
    const auto result = truncate(s, strength);
    ASSERT_FALSE(result) << strength;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace sfumato::sampling
