// Every network alone, on random inputs, against PyTorch (tools/golden/pipelines.py: network_cases).
#include "base/cpu.h"
#include "pipeline/model.h"
#include "pipeline/programs.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

struct Case {
  std::string family;
  Isa isa;
};

class Networks : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().isa > machine_isa()) GTEST_SKIP() << "this machine has no " << isa_name(GetParam().isa);
    set_active_isa(GetParam().isa);
    golden_ = open_golden("pipelines/" + GetParam().family + "_networks.safetensors");
    auto model = Model::open(golden_path("pipelines/" + GetParam().family));
    ASSERT_TRUE(model) << model.error().message;
    model_.emplace(std::move(*model));
  }
  void TearDown() override { set_active_isa(machine_isa()); }

  TensorView golden(const std::string& name) const {
    const auto found = golden_->find(name);
    EXPECT_TRUE(found) << name;
    return *found;
  }
  std::vector<Tensor> run(Result<ir::Graph> graph, std::shared_ptr<const WeightSource> weights,
                          const std::vector<TensorView>& inputs) {
    EXPECT_TRUE(graph) << graph.error().message;
    auto program = backend_->compile(std::move(*graph), std::move(weights), {Precision::kF32});
    EXPECT_TRUE(program) << program.error().message;
    auto outputs = (*program)->run(inputs);
    EXPECT_TRUE(outputs) << outputs.error().message;
    return std::move(*outputs);
  }

  std::shared_ptr<const SafetensorsFile> golden_;
  std::optional<Model> model_;
  std::unique_ptr<Backend> backend_ = make_cpu_backend(0);
};

constexpr double kTolerance = 1e-4;

TEST_P(Networks, UNet) {
  const Tensor sample = channels_last(golden("sample")), expected = channels_last(golden("unet"));
  std::vector<TensorView> inputs = {sample.view(), golden("timestep"), golden("context")};
  if (model_->has_size_conditioning()) inputs.insert(inputs.end(), {golden("text_embeds"), golden("time_ids")});
  const auto outputs =
      run(models::build_unet(model_->unet, *model_->unet_weights, 2, 8, 6, 77), model_->unet_weights, inputs);
  EXPECT_LT(relative_error(outputs[0].f32(), expected.f32()), kTolerance);
}

TEST_P(Networks, VaeDecoder) {
  const Tensor sample = channels_last(golden("sample")), expected = channels_last(golden("decoded"));
  const TensorView first{sample.data(), {1, 8, 6, 4}, DType::kF32};
  const auto outputs =
      run(models::build_vae_decoder(model_->vae, *model_->vae_weights, 1, 8, 6), model_->vae_weights, {first});
  EXPECT_LT(relative_error(outputs[0].f32(), expected.f32()), kTolerance);
}

TEST_P(Networks, VaeEncoder) {
  const Tensor picture = channels_last(golden("picture")), expected = channels_last(golden("moments"));
  const auto outputs = run(models::build_vae_encoder(model_->vae, *model_->vae_weights, 1, 64, 48), model_->vae_weights,
                           {picture.view()});
  EXPECT_LT(relative_error(outputs[0].f32(), expected.f32()), kTolerance);
}

TEST_P(Networks, TextEncoders) {
  for (size_t i = 0; i < model_->text_encoders.size(); ++i) {
    const TextEncoder& encoder = model_->text_encoders[i];
    const std::string name = i == 0 ? "text_encoder" : "text_encoder_2";
    const TensorView ids = golden("ids");
    std::vector<int32_t> end;
    for (int row = 0; row < 2; ++row)
      for (int at = 0; at < 77; ++at)
        if (static_cast<const int32_t*>(ids.data)[row * 77 + at] == 49407) {
          end.push_back(at);
          break;
        }
    const std::vector<TensorView> inputs = {ids, {end.data(), {2}, DType::kI32}};
    const auto last =
        run(models::build_clip_text(encoder.config, *encoder.weights, 2, {0, true}), encoder.weights, inputs);
    EXPECT_LT(relative_error(last[0].f32(), golden(name + ".last").to_floats()), kTolerance);
    const auto before =
        run(models::build_clip_text(encoder.config, *encoder.weights, 2, {1, false}), encoder.weights, inputs);
    EXPECT_LT(relative_error(before[0].f32(), golden(name + ".penultimate").to_floats()), kTolerance);
    ASSERT_EQ(last.size() > 1, golden_->find(name + ".pooled").has_value());
    if (last.size() > 1) {
      EXPECT_LT(relative_error(last[1].f32(), golden(name + ".pooled").to_floats()), kTolerance);
    }
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* family : {"sd1", "sd2", "sdxl"})
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) cases.push_back({family, isa});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Families, Networks, testing::ValuesIn(all_cases()), [](const auto& info) {
  return info.param.family + "_" + std::string(isa_name(info.param.isa));
});

}  // namespace
}  // namespace sfumato
