#include "sampling/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/strings.h"
#include "sampling/guidance.h"
#include "sampling/noise.h"

namespace sfumato::sampling {
namespace {

using ::testing::Each;

std::vector<SamplerKind> all_samplers() {
  std::vector<SamplerKind> kinds;
  for (const auto name : sampler_names()) kinds.push_back(parse_sampler(name).value().sampler);
  return kinds;
}

Result<void> network(std::span<const float> x, float t, std::span<float> out) {
  for (size_t i = 0; i < x.size(); ++i) out[i] = 0.8f * x[i] / (1 + x[i] * x[i]) + t * 1e-4f;
  return {};
}

NoiseFn make_generator_fn() {
  return BatchNoise(RngKind::kCpu, std::vector<uint64_t>{1});
}

/// Draws images of `size` values with seeds seed, seed + 1, ...
std::vector<float> draw(const Schedule& schedule, int images, size_t size, uint64_t seed,
                        const Network& net = network) {
  std::vector<uint64_t> seeds;
  for (int i = 0; i < images; ++i) seeds.push_back(seed + i);
  BatchNoise noise(RngKind::kCpu, seeds);
  std::vector<float> x(size * images);
  noise(x);
  for (float& v : x) v *= static_cast<float>(schedule.init_noise_sigma);
  sample(schedule, net, x, noise).value();
  return x;
}

TEST(Sampler, ImageOfABatchEqualsTheSingleImage) {  // G1, D21
  for (const SamplerKind kind : all_samplers()) {
    const auto schedule = make_schedule({}, kind, ScheduleKind::kModel, 4).value();
    const auto batch = draw(schedule, 4, 256, 100);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(std::vector<float>(batch.begin() + i * 256, batch.begin() + (i + 1) * 256),
                draw(schedule, 1, 256, 100 + i))
          << sampler_name(kind) << " image " << i;
  }
}

TEST(Sampler, NothingIsKeptBetweenCalls) {  // D11
  for (const SamplerKind kind : all_samplers()) {
    const auto schedule = make_schedule({}, kind, ScheduleKind::kModel, 6).value();
    const auto alone = draw(schedule, 1, 64, 5);
    draw(make_schedule({}, kind, ScheduleKind::kTrailing, 3).value(), 2, 100, 9);
    EXPECT_EQ(draw(schedule, 1, 64, 5), alone) << sampler_name(kind);
  }
}

TEST(Sampler, EndsAtTheImage) {  // D9: a network that always finds the image 0
  SchedulerConfig config;
  config.prediction_type = PredictionType::kSample;
  config.set_alpha_to_one = true;
  const Network zero = [](auto, float, std::span<float> out) -> Result<void> {
    std::fill(out.begin(), out.end(), 0.0f);
    return {};
  };
  for (const SamplerKind kind : all_samplers()) {
    if (kind == SamplerKind::kTcd) continue;  // ends at the lowest training level, as its reference
    const auto x = draw(make_schedule(config, kind, ScheduleKind::kModel, 20).value(), 1, 64, 1, zero);
    const float scale = kind == SamplerKind::kLcm                                 ? 1e-3f
                        : kind == SamplerKind::kLms || kind == SamplerKind::kPndm ? 0.1f
                                                                                  : 0;
    EXPECT_THAT(x, Each(::testing::FloatNear(0, scale))) << sampler_name(kind);
  }
}

TEST(Sampler, TinySigmasStayFinite) {  // D15
  for (const SamplerKind kind : all_samplers())
    for (const PredictionType prediction : {PredictionType::kEpsilon, PredictionType::kV, PredictionType::kSample}) {
      SchedulerConfig config;
      config.prediction_type = prediction;
      auto schedule = make_schedule(config, kind, ScheduleKind::kModel, 6).value();
      auto& levels = schedule.levels;
      for (Level* level : {&levels[4], &levels[5]}) level->alpha = 1;
      levels[4].sigma = levels[5].sigma = 1e-6;
      levels[6] = Level{};
      EXPECT_THAT(draw(schedule, 1, 64, 1), Each(::testing::Truly([](float v) { return std::isfinite(v); })))
          << sampler_name(kind) << " " << prediction_name(prediction);
    }
}

TEST(Sampler, EveryScheduleOfEverySamplerStaysFinite) {
  for (const SamplerKind sampler : all_samplers())
    for (const auto name : schedule_names())
      for (const bool zero_snr : {false, true})
        for (const int steps : {1, 2, 3, 10, 50, 1000}) {
          SchedulerConfig config;
          config.rescale_betas_zero_snr = zero_snr;
          if (zero_snr) config.prediction_type = PredictionType::kV;
          const auto schedule = make_schedule(config, sampler, parse_schedule(name).value(), steps);
          if (!schedule) continue;  // LCM and TCD beyond their own count
          EXPECT_THAT(draw(*schedule, 1, 16, 1), Each(::testing::Truly([](float v) { return std::isfinite(v); })))
              << sampler_name(sampler) << " " << name << " " << steps << " zero SNR " << zero_snr;
        }
}

TEST(Sampler, StepEvents) {
  for (const SamplerKind kind : all_samplers()) {
    const auto schedule = make_schedule({}, kind, ScheduleKind::kModel, 5).value();
    std::vector<float> x(16, 1.0f);
    int events = 0;
    sample(schedule, network, x, make_generator_fn(), [&](const StepEvent& e) {
      EXPECT_EQ(e.step, ++events);
      EXPECT_EQ(e.latents.data(), x.data());
      EXPECT_EQ(e.denoised.size(), x.size());
      EXPECT_EQ(e.level.sigma == 0, e.step == e.steps);
      return true;
    }).value();
    EXPECT_EQ(events, kind == SamplerKind::kPndm ? 6 : 5) << sampler_name(kind);
  }
}

TEST(Sampler, StopsWithinAStep) {
  for (const SamplerKind kind : all_samplers()) {
    const auto schedule = make_schedule({}, kind, ScheduleKind::kModel, 10).value();
    std::vector<float> x(16, 1.0f);
    int events = 0;
    const auto result =
        sample(schedule, network, x, make_generator_fn(), [&](const StepEvent&) { return ++events < 2; });
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
    EXPECT_EQ(events, 2);
  }
}

TEST(Sampler, PassesOnTheNetworksError) {
  const Network broken = [](auto, float, auto) -> Result<void> { return runtime_error("no"); };
  std::vector<float> x(16);
  for (const SamplerKind kind : all_samplers()) {
    const auto result =
        sample(make_schedule({}, kind, ScheduleKind::kModel, 3).value(), broken, x, make_generator_fn());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message, "no");
  }
}

TEST(Sampler, PredictionTypeIsHeeded) {  // B9: sample 1, sigma 1, output 1: eps means image 0, v means 1/2 - 1/sqrt 2
  const Network one = [](auto, float, std::span<float> out) -> Result<void> {
    std::fill(out.begin(), out.end(), 1.0f);
    return {};
  };
  for (const auto& [prediction, image] :
       {std::pair{PredictionType::kEpsilon, 0.0}, {PredictionType::kV, -0.2071068}, {PredictionType::kSample, 1.0}}) {
    SchedulerConfig config;
    config.prediction_type = prediction;
    auto schedule = make_schedule(config, SamplerKind::kEuler, ScheduleKind::kModel, 1).value();
    schedule.levels[0] = {1, 1, 500};
    std::vector<float> x = {1};
    sample(schedule, one, x, make_generator_fn()).value();
    EXPECT_NEAR(x[0], image, 1e-6);
  }
}

TEST(Sampler, NetworkSeesUnitVariance) {
  for (const SamplerKind kind : all_samplers()) {
    const auto schedule = make_schedule({}, kind, ScheduleKind::kTrailing, 3).value();
    bool first = true;
    const Network look = [&](std::span<const float> x, float t, std::span<float> out) -> Result<void> {
      double squares = 0;
      for (float v : x) squares += double{v} * v;
      if (first) {
        EXPECT_NEAR(squares / x.size(), 1, 0.05) << sampler_name(kind);
        EXPECT_EQ(t, 999);
      }
      first = false;
      return network(x, t, out);
    };
    draw(schedule, 1, 4096, 3, look);
    EXPECT_FALSE(first);
  }
}

TEST(Sampler, OneStepOfDpmpp3MSdeIsEulers) {
  const auto want = draw(make_schedule({}, SamplerKind::kEuler, ScheduleKind::kTrailing, 1).value(), 1, 16, 1);
  const auto got = draw(make_schedule({}, SamplerKind::kDpmpp3MSde, ScheduleKind::kTrailing, 1).value(), 1, 16, 1);
  EXPECT_EQ(got, want);
}

TEST(Guidance, ScaleOneIsTheConditional) {
  const std::vector<float> cond = {1, 2, 3, 4}, uncond = {0.5, 0.25, -1, 2};
  std::vector<float> out(4);
  guide(cond, uncond, 1, 0, out);
  EXPECT_EQ(out, cond);
  guide(cond, uncond, 0, 0, out);
  EXPECT_EQ(out, uncond);
}

TEST(Guidance, RescaleRestoresTheDeviation) {
  const std::vector<float> cond = {1, 3}, uncond = {0, 0};
  std::vector<float> out(2), in_place = cond;
  guide(cond, uncond, 5, 1, out);
  EXPECT_NEAR(out[1] - out[0], 2, 1e-5);
  guide(in_place, uncond, 5, 1, in_place);
  EXPECT_EQ(in_place, out);
}

TEST(Guidance, FlatPredictionsStayFinite) {
  const std::vector<float> flat = {2, 2, 2, 2};
  std::vector<float> out(4);
  guide(flat, flat, 7.5f, 0.7f, out);
  EXPECT_EQ(out, flat);
}

}  // namespace
}  // namespace sfumato::sampling
