#include "sampling/names.h"

#include <gmock/gmock.h>

#include <set>

namespace sfumato::sampling {
namespace {

using ::testing::HasSubstr;

SamplerKind kind(std::string_view name) {
  return parse_sampler(name).value().sampler;
}

TEST(SamplerNames, EveryDialect) {
  EXPECT_EQ(kind("Euler a"), SamplerKind::kEulerAncestral);  // A1111
  EXPECT_EQ(kind("DPM++ 2S a"), SamplerKind::kDpmpp2SAncestral);
  EXPECT_EQ(kind("PLMS"), SamplerKind::kPndm);
  EXPECT_EQ(kind("euler_a"), SamplerKind::kEulerAncestral);  // sd.cpp
  EXPECT_EQ(kind("dpm++2m"), SamplerKind::kDpmpp2M);
  EXPECT_EQ(kind("dpm++2s_a"), SamplerKind::kDpmpp2SAncestral);
  EXPECT_EQ(kind("dpm2"), SamplerKind::kDpm2);
  EXPECT_EQ(kind("dpmpp_2m_sde"), SamplerKind::kDpmpp2MSde);  // ComfyUI
  EXPECT_EQ(kind("dpmpp_2s_ancestral"), SamplerKind::kDpmpp2SAncestral);
  EXPECT_EQ(kind("dpm_2_ancestral"), SamplerKind::kDpm2Ancestral);
  EXPECT_EQ(kind("uni_pc"), SamplerKind::kUniPc);
  EXPECT_EQ(kind("KDPM2AncestralDiscreteScheduler"), SamplerKind::kDpm2Ancestral);  // diffusers
  EXPECT_EQ(kind("PNDMScheduler"), SamplerKind::kPndm);
}

TEST(SamplerNames, EveryKindHasItsOwnNameAndReadsItBack) {
  std::set<SamplerKind> seen;
  for (const auto name : sampler_names()) {
    EXPECT_EQ(sampler_name(kind(name)), name);
    seen.insert(kind(name));
  }
  EXPECT_EQ(seen.size(), 17u);
  std::set<ScheduleKind> schedules;
  for (const auto name : schedule_names()) {
    const auto schedule = parse_schedule(name).value();
    EXPECT_EQ(schedule_name(schedule), name);
    schedules.insert(schedule);
  }
  EXPECT_EQ(schedules.size(), 11u);
}

TEST(SamplerNames, ScheduleSuffixIsSplitOff) {
  for (const auto& name : {"DPM++ 2M Karras", "dpm++2m_karras", "DPM++ 2M  karras"}) {
    const auto choice = parse_sampler(name).value();
    EXPECT_EQ(choice.sampler, SamplerKind::kDpmpp2M);
    EXPECT_EQ(choice.schedule, ScheduleKind::kKarras);
  }
  EXPECT_EQ(parse_sampler("DPM++ 3M SDE Exponential").value().schedule, ScheduleKind::kExponential);
  EXPECT_EQ(parse_sampler("Euler SGM Uniform").value().schedule, ScheduleKind::kSgmUniform);
  EXPECT_EQ(parse_sampler("Euler").value().schedule, std::nullopt);
}

TEST(SamplerNames, UnknownNamesListTheKnown) {
  for (const auto& name : {"", "Karras", "Restart", "Euler b"}) {
    const auto result = parse_sampler(name);
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(result.error().message, HasSubstr("DPM++ 2M SDE"));
  }
  EXPECT_THAT(parse_schedule("polyexponential").error().message, HasSubstr("Align Your Steps"));
  EXPECT_THAT(parse_prediction("flow").error().message, HasSubstr("v_prediction"));
}

TEST(Names, SchedulesAndPredictions) {
  EXPECT_EQ(parse_schedule("ays").value(), ScheduleKind::kAlignYourSteps);
  EXPECT_EQ(parse_schedule("discrete").value(), ScheduleKind::kLinspace);
  EXPECT_EQ(parse_schedule("sgm_uniform").value(), ScheduleKind::kSgmUniform);
  EXPECT_EQ(parse_prediction("v").value(), PredictionType::kV);
  EXPECT_EQ(parse_prediction("eps").value(), PredictionType::kEpsilon);
  EXPECT_EQ(parse_rng("philox").value(), RngKind::kPhilox);
  EXPECT_EQ(parse_rng(rng_name(RngKind::kCpu)).value(), RngKind::kCpu);
  EXPECT_EQ(parse_rng("gpu").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(prediction_name(PredictionType::kV), "v_prediction");
}

}  // namespace
}  // namespace sfumato::sampling
