// The PJRT backend on the real CPU plugin, against the CPU backend, on the tiny models.
#include <gmock/gmock.h>

#include <filesystem>

#include "backend/pjrt/discovery.h"
#include "ir/builder.h"
#include "pipeline/pipeline.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

PipelineOptions options_of(const std::string& family, int devices) {
  PipelineOptions options{golden_path("pipelines/" + family), 0, Precision::kF32};
  options.pjrt = true;
  options.accelerator.devices = devices;
  return options;
}

Request small_request() {
  Request request;
  request.prompts = {"a red apple"};
  request.size = Size{64, 64};
  request.steps = 5;
  request.seed = 42;
  return request;
}

class Pjrt : public testing::Test {
 protected:
  void SetUp() override {
    setenv("SFUMATO_CACHE_DIR", "", 1);  // programs are compiled, not found
    const auto backend = make_pjrt_backend({"", 1});
    if (!backend) GTEST_SKIP() << backend.error().message;
  }
  std::unique_ptr<Pipeline> load(const std::string& family, int devices = 1) {
    auto pipeline = Pipeline::load(options_of(family, devices));
    EXPECT_TRUE(pipeline) << pipeline.error().message;
    return std::move(*pipeline);
  }
  std::vector<Picture> draw(Pipeline& pipeline, const Request& request) {
    auto pictures = pipeline.generate(request);
    EXPECT_TRUE(pictures) << pictures.error().message;
    return pictures ? std::move(*pictures) : std::vector<Picture>();
  }
};

class PjrtFamilies : public Pjrt, public testing::WithParamInterface<std::string> {};

TEST_P(PjrtFamilies, EqualTheCpuBackendAfterFiveSteps) {
  const auto pipeline = load(GetParam());
  const auto cpu = Pipeline::load({golden_path("pipelines/" + GetParam()), 0, Precision::kF32});
  ASSERT_TRUE(cpu) << cpu.error().message;
  const auto got = draw(*pipeline, small_request()), expected = draw(**cpu, small_request());
  ASSERT_EQ(got.size(), 1u);
  EXPECT_LT(relative_error(got[0].latents.f32(), expected[0].latents.f32()), 1e-4);
  int worst = 0;
  for (size_t i = 0; i < got[0].image.pixels.size(); ++i)
    worst = std::max(worst, std::abs(got[0].image.pixels[i] - expected[0].image.pixels[i]));
  EXPECT_LE(worst, 1);
}

TEST_P(PjrtFamilies, FourDevicesDrawWhatOneDoesToTheLastBit) {
  const auto one = load(GetParam()), four = load(GetParam(), 4);
  ASSERT_EQ(four->backend().devices(), 4);
  Request request = small_request();
  request.prompts = {"a red apple", "a cat", "a house by the sea"};
  request.images = 2;  // six: the second pass is filled up
  const auto alone = draw(*one, request), together = draw(*four, request);
  ASSERT_EQ(together.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(together[i].seed, 42 + i);
    EXPECT_THAT(together[i].latents.f32(), testing::ElementsAreArray(alone[i].latents.f32())) << "picture " << i;
    EXPECT_EQ(together[i].image.pixels, alone[i].image.pixels) << "picture " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PjrtFamilies, testing::Values("sd1", "sd2", "sdxl"),
                         [](const auto& info) { return info.param; });

TEST_F(Pjrt, EachNetworkIsCompiledOnce) {
  const auto pipeline = load("sd1");
  Request request = small_request();
  draw(*pipeline, request);
  EXPECT_EQ(pipeline->backend().compiled(), 4);  // text encoder, U-Net of the prompt and of each step, decoder
  request.prompts = {"something else entirely"};
  request.seed = 7;
  request.steps = 4;
  request.guidance = 3.5f;
  request.images = 2;
  draw(*pipeline, request);
  EXPECT_EQ(pipeline->backend().compiled(), 4);
}

TEST_F(Pjrt, HalfPrecisionsStayNearFloat) {
  const auto exact = load("sd1");
  const auto expected = draw(*exact, small_request());
  for (const auto& [precision, bound] : {std::pair{Precision::kBF16, 0.1}, std::pair{Precision::kF16, 0.02}}) {
    PipelineOptions options = options_of("sd1", 1);
    options.precision = precision;
    auto pipeline = Pipeline::load(options);
    ASSERT_TRUE(pipeline) << pipeline.error().message;
    const auto got = draw(**pipeline, small_request());
    const double error = relative_error(got[0].latents.f32(), expected[0].latents.f32());
    EXPECT_LT(error, bound) << precision_name(precision);
    EXPECT_GT(error, 1e-6) << precision_name(precision) << " is not what was asked for";
  }
}

/// gamma 2, beta 3.
class NormWeights final : public WeightSource {
 public:
  std::optional<TensorView> find(const std::string& name) const override {
    return name == "gamma" ? gamma_.view() : beta_.view();
  }
  std::vector<std::string> names() const override { return {"gamma", "beta"}; }

 private:
  static Tensor filled(float value) { return Tensor::from(Shape{64}, std::vector<float>(64, value)); }
  Tensor gamma_ = filled(2), beta_ = filled(3);
};

TEST_F(Pjrt, ManyKeysDoNotOverflowHalfPrecision) {
  const auto backend = make_pjrt_backend({"", 1});
  ASSERT_TRUE(backend) << backend.error().message;
  ir::Builder b("attention");
  const Shape queries{1, 4, 64}, keys{1, 4096, 64};
  const ir::Value q = b.input("q", queries), k = b.input("k", keys), v = b.input("v", keys);
  b.output("y", b.attention(q, k, v, {1, 0.125f, false}));
  auto program = (*backend)->compile(std::move(b).finish(), std::make_shared<NormWeights>(), {Precision::kF16});
  ASSERT_TRUE(program) << program.error().message;
  const Tensor zeros = Tensor::from(queries, std::vector<float>(4 * 64, 0)),
               twenties = Tensor::from(keys, std::vector<float>(4096 * 64, 20));
  const TensorView inputs[] = {zeros.view(), twenties.view(), twenties.view()};  // all keys weigh the same
  const auto outputs = (*program)->run(inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (const float y : (*outputs)[0].f32()) ASSERT_NEAR(y, 20, 0.1);
}

TEST_F(Pjrt, EqualValuesHaveNoVarianceIn16BitsEither) {
  const auto backend = make_pjrt_backend({"", 1});
  ASSERT_TRUE(backend) << backend.error().message;
  for (const bool is_group : {false, true}) {
    ir::Builder b("norm");
    const ir::Value x = b.input("x", {1, 4, 4, 64});
    const ir::Value gamma = b.weight("gamma", {64}, DType::kF32), beta = b.weight("beta", {64}, DType::kF32);
    b.output("y", is_group ? b.group_norm(x, gamma, beta, {32, 1e-6f, false}) : b.layer_norm(x, gamma, beta, 1e-6f));
    auto program = (*backend)->compile(std::move(b).finish(), std::make_shared<NormWeights>(), {Precision::kBF16});
    ASSERT_TRUE(program) << program.error().message;
    const Tensor input = Tensor::from(Shape{1, 4, 4, 64}, std::vector<float>(1024, 1237.3f));
    const TensorView view = input.view();
    const auto outputs = (*program)->run({&view, 1});
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (const float y : (*outputs)[0].f32())  // the mean itself is rounded, and divided by 0.001
      ASSERT_NEAR(y, 3, 1) << (is_group ? "group norm" : "layer norm");
  }
}

TEST_F(Pjrt, FaultsOfThePluginAreOneClearLine) {
  const auto message_of = [](const std::string& plugin, int devices) {
    const auto backend = make_pjrt_backend({plugin, devices});
    return backend ? std::string("loaded") : backend.error().message;
  };
  EXPECT_EQ(message_of("/nowhere/libx.so", 1),
            "[backend.pjrt] no plugin at \"/nowhere/libx.so\"; give its path with --plugin");
  EXPECT_NE(message_of(golden_path("pipelines/cases.json") + "/../init.png.so", 1).find("no plugin at"),
            std::string::npos);
  const std::string path = testing::TempDir() + "/not_a_plugin.so";
  std::filesystem::copy_file(golden_path("pipelines/cases.json"), path,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(message_of(path, 1).find("does not load"), std::string::npos);
  EXPECT_NE(message_of("unknown_name", 1).find("is no path"), std::string::npos);
}

}  // namespace
}  // namespace sfumato
