// Samplers, schedules, noise and guidance against diffusers, k-diffusion and PyTorch: tools/golden/sampling.py.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/strings.h"
#include "sampling/guidance.h"
#include "sampling/noise.h"
#include "sampling/sampler.h"
#include "weights/safetensors.h"

namespace sfumato::sampling {
namespace {

using Json = nlohmann::json;
const std::string kFolder = SFUMATO_SOURCE_DIR "/tests/golden/sampling/";
constexpr int kLatent = 4 * 8 * 8, kStored = 4;  // values drawn; every how manieth is in the file
constexpr uint64_t kSeed = 7;

const SafetensorsFile& golden() {
  static const auto file = SafetensorsFile::open(kFolder + "sampling.safetensors").value();
  return *file;
}

template <class T>
std::vector<T> read(const std::string& name) {
  const auto view = golden().find(name);
  EXPECT_TRUE(view.has_value()) << name;
  if (!view) return {};
  std::vector<T> out(view->shape.elements());
  std::memcpy(out.data(), view->data, out.size() * sizeof(T));
  return out;
}

/// The function that stands in for the network, as in tools/golden/sampling.py.
Result<void> network(std::span<const float> x, float t, std::span<float> out) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float z = x[i] * 0.7f + t * 0.001f - 0.3f;
    out[i] = z / (1.0f + z * z * 0.25f) * 0.8f + x[i] * 0.2f;
  }
  return {};
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!std::isfinite(a[i]) && a[i] == b[i]) continue;
    largest = std::max(largest, std::isfinite(a[i]) ? std::fabs(double{a[i]} - b[i]) : 1e30);
  }
  return largest;
}

double largest(std::span<const float> a) {
  return std::accumulate(a.begin(), a.end(), 0.0, [](double m, float v) { return std::max(m, std::fabs(double{v})); });
}

void expect_close_each(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i]) && got[i] == want[i]) continue;
    EXPECT_NEAR(got[i], want[i], 1e-6 * std::max(1.0f, std::fabs(want[i]))) << what << " [" << i << "]";
  }
}

Schedule schedule_of(const Json& c) {
  auto config = parse_scheduler_config(c["config"].dump()).value();
  if (c["config"].contains("eta")) config.eta = c["config"]["eta"].get<double>();
  const auto sampler = parse_sampler(c["sampler"].get<std::string>()).value().sampler;
  auto schedule = make_schedule(config, sampler, ScheduleKind::kModel, c["steps"].get<int>()).value();
  schedule.begin = c["begin"].get<int>();
  return schedule;
}

TEST(SamplingGolden, Samplers) {
  const Json cases = Json::parse(std::ifstream(kFolder + "cases.json"));
  ASSERT_GT(cases.size(), 300u);
  for (const Json& c : cases) {
    const std::string key = c["key"].get<std::string>(), what = c.dump();
    const Schedule schedule = schedule_of(c);
    expect_close_each(schedule.timesteps(), read<float>(key + ".timesteps"), what + " timesteps");
    auto sigmas = schedule.sigmas();
    const auto want_sigmas = read<float>(key + ".sigmas");
    sigmas.resize(want_sigmas.size());  // diffusers' own last sigma is in the table only for some classes
    expect_close_each(sigmas, want_sigmas, what + " sigmas");

    const auto generator = make_generator(RngKind::kCpu, kSeed);
    std::vector<float> x(kLatent), picture(kLatent, 0.5f);
    generator->normal(x);
    if (schedule.begin > 0) {
      add_noise(schedule.start(), picture, x, x);
    } else {
      for (float& v : x) v *= static_cast<float>(schedule.init_noise_sigma);
    }
    sample(schedule, network, x, [&](std::span<float> out) { generator->normal(out); }).value();
    std::vector<float> stored;
    for (size_t i = 0; i < x.size(); i += kStored) stored.push_back(x[i]);
    const auto want = read<float>(key + ".x");
    EXPECT_LE(largest_difference(stored, want), 1e-5 * largest(want)) << what << " largest " << largest(want);
  }
}

TEST(SamplingGolden, TorchNoiseBitForBit) {
  int checked = 0;
  for (const auto& name : golden().names()) {
    const auto parts = split(name, '.');
    if (parts[0] != "noise") continue;
    const auto generator = make_generator(RngKind::kCpu, std::stoull(parts[1]));
    std::vector<float> got;
    for (const auto& length : split(parts[2], '-')) {
      std::vector<float> call(std::stoul(length));
      generator->normal(call);
      got.insert(got.end(), call.begin(), call.end());
    }
    const auto want = read<float>(name);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << name;
    ++checked;
  }
  EXPECT_EQ(checked, 5);
  for (int size : {4 * 64 * 64, 4 * 128 * 128, 3 * 37 * 41}) {
    std::vector<float> x(size);
    make_generator(RngKind::kCpu, 42)->normal(x);
    int64_t sum = 0;
    for (float v : x) sum += std::bit_cast<int32_t>(v);
    EXPECT_EQ(sum, read<int64_t>(str("noise_sum.42.", size)).at(0)) << size;
  }
}

TEST(SamplingGolden, TimestepSpacings) {
  int checked = 0;
  for (const auto& name : golden().names()) {
    const auto parts = split(name, '.');
    if (parts[0] != "timesteps") continue;
    SchedulerConfig config;
    const auto kind = parse_schedule(parts[2]).value();
    const auto schedule =
        make_schedule(config, parse_sampler(parts[1]).value().sampler, kind, std::stoi(parts[3])).value();
    expect_close_each(schedule.timesteps(), read<float>(name), name);
    ++checked;
  }
  EXPECT_EQ(checked, 3 * 3 * 8);
}

TEST(SamplingGolden, AlignYourSteps) {
  for (const bool sdxl : {false, true}) {
    SchedulerConfig config;
    config.sdxl = sdxl;
    const auto schedule = make_schedule(config, SamplerKind::kEuler, ScheduleKind::kAlignYourSteps, 10).value();
    const std::string family = sdxl ? "ays.StableDiffusionXL" : "ays.StableDiffusion";
    expect_close_each(schedule.sigmas(), read<float>(family + ".sigmas"), family);
    // diffusers interpolates in single precision here
    EXPECT_LE(largest_difference(schedule.timesteps(), read<float>(family + ".timesteps")), 1e-3);
  }
}

TEST(SamplingGolden, Guidance) {
  const auto cond = read<float>("guidance.cond"), uncond = read<float>("guidance.uncond");
  const size_t image = cond.size() / 2;
  for (const auto& [name, rescale] : {std::pair{"guidance.plain", 0.0f}, {"guidance.rescaled", 0.7f}}) {
    std::vector<float> out(cond.size());
    for (size_t at = 0; at < out.size(); at += image)
      guide(std::span(cond).subspan(at, image), std::span(uncond).subspan(at, image), 7.5f, rescale,
            std::span(out).subspan(at, image));
    EXPECT_LE(largest_difference(out, read<float>(name)), 1e-6 * largest(out)) << name;
  }
}

}  // namespace
}  // namespace sfumato::sampling
