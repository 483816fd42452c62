#include "sampling/scheduler_config.h"

#include <gmock/gmock.h>

namespace sfumato::sampling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SchedulerConfig, StableDiffusion15) {
  const auto c = parse_scheduler_config(R"({"_class_name": "PNDMScheduler", "_diffusers_version": "0.6.0",
    "beta_end": 0.012, "beta_schedule": "scaled_linear", "beta_start": 0.00085, "clip_sample": false,
    "num_train_timesteps": 1000, "set_alpha_to_one": false, "skip_prk_steps": true, "steps_offset": 1,
    "trained_betas": null})")
                     .value();
  EXPECT_EQ(c.own_sampler().value(), SamplerKind::kPndm);
  EXPECT_EQ(c.beta_schedule, BetaSchedule::kScaledLinear);
  EXPECT_EQ(c.beta_end, 0.012);
  EXPECT_EQ(c.steps_offset, 1);
  EXPECT_EQ(c.set_alpha_to_one, false);
  EXPECT_TRUE(c.skip_prk_steps);
  EXPECT_FALSE(c.timestep_spacing);  // the sampler's own
  EXPECT_THAT(c.notes, IsEmpty());
}

TEST(SchedulerConfig, MissingKeysMeanWhatDiffusersAssumes) {
  const auto c = parse_scheduler_config("{}").value();
  EXPECT_EQ(c.beta_schedule, BetaSchedule::kLinear);
  EXPECT_EQ(c.beta_start, 0.0001);
  EXPECT_EQ(c.beta_end, 0.02);
  EXPECT_EQ(c.steps_offset, 0);
  EXPECT_FALSE(c.skip_prk_steps);
}

TEST(SchedulerConfig, ClassAndAlgorithmNameTheSampler) {
  const auto sampler = [](const std::string& keys) {
    return parse_scheduler_config("{" + keys + "}").value().own_sampler();
  };
  const std::string dpm = R"("_class_name": "DPMSolverMultistepScheduler")";
  EXPECT_EQ(sampler(dpm).value(), SamplerKind::kDpmpp2M);
  EXPECT_EQ(sampler(dpm + R"(, "algorithm_type": "sde-dpmsolver++")").value(), SamplerKind::kDpmpp2MSde);
  EXPECT_EQ(sampler(dpm + R"(, "algorithm_type": "sde-dpmsolver++", "solver_order": 3)").value(),
            SamplerKind::kDpmpp3MSde);
  EXPECT_EQ(sampler(R"("_class_name": "TCDScheduler")").value(), SamplerKind::kTcd);
  // What cannot be run as the file says is an error only if nobody names another sampler.
  for (const auto& keys : {dpm + R"(, "algorithm_type": "dpmsolver")", std::string(R"("_class_name": "FlowScheduler")"),
                           std::string(R"("thresholding": true)"), std::string(R"("timestep_type": "continuous")")}) {
    const auto result = sampler(keys);
    ASSERT_FALSE(result) << keys;
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(result.error().message, HasSubstr("--sampler"));
  }
}

TEST(SchedulerConfig, UnknownAndIrrelevantKeysAreNoted) {
  const auto c = parse_scheduler_config(R"({"frobnicate": 3, "set_alpha_to_one": false, "clip_sample": true,
    "sample_max_value": 1.0})")
                     .value();
  EXPECT_THAT(c.notes, ElementsAre(HasSubstr("clip_sample"), HasSubstr("frobnicate")));
  EXPECT_EQ(c.set_alpha_to_one, false);
}

TEST(SchedulerConfig, PythonsMinusInfinity) {
  EXPECT_LT(parse_scheduler_config(R"({"lambda_min_clipped": -Infinity})").value().lambda_min_clipped, -1e100);
}

TEST(SchedulerConfig, WrongTypesAndValuesAreErrors) {
  for (const auto& text : {"",
                           "[]",
                           "{",
                           "null",
                           R"({"beta_start": "0.1"})",
                           R"({"beta_start": 0})",
                           R"({"beta_start": 0.5, "beta_end": 0.1})",
                           R"({"beta_end": 1.5})",
                           R"({"beta_end": 1e999})",
                           R"({"num_train_timesteps": 1})",
                           R"({"num_train_timesteps": 1e9})",
                           R"({"num_train_timesteps": 99999999999999999999})",
                           R"({"num_train_timesteps": true})",
                           R"({"beta_schedule": "sigmoid"})",
                           R"({"beta_schedule": 5})",
                           R"({"trained_betas": [0.1, 0.2]})",
                           R"({"trained_betas": "all"})",
                           R"({"trained_betas": [[0.1]]})",
                           R"({"prediction_type": "flow_prediction"})",
                           R"({"timestep_spacing": "log"})",
                           R"({"steps_offset": -1})",
                           R"({"use_karras_sigmas": "yes"})",
                           R"({"use_karras_sigmas": true, "use_beta_sigmas": true})",
                           R"({"solver_order": 4})",
                           R"({"disable_corrector": [-1]})",
                           R"({"disable_corrector": 3})",
                           R"({"original_inference_steps": 0})",
                           R"({"sigma_min": 0})",
                           R"({"sigma_min": 2, "sigma_max": 1})",
                           R"({"final_sigmas_type": "one"})",
                           R"({"variance_type": "learned_range"})",
                           R"({"_class_name": 7})"}) {
    const auto result = parse_scheduler_config(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput) << text;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos) << text;
    EXPECT_THAT(result.error().message, HasSubstr("expected")) << text;
  }
}

}  // namespace
}  // namespace sfumato::sampling
