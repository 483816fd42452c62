// The tiny autoencoder for previews against diffusers' AutoencoderTiny (tools/golden/taesd.py).
#include "image/convert.h"
#include "pipeline/pipeline.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

PipelineOptions options_of(const std::string& taesd) {
  PipelineOptions options{golden_path("pipelines/sd1"), 0, Precision::kF32};
  options.taesd = golden_path(taesd);
  return options;
}

TEST(Taesd, PreviewIsWhatDiffusersDecodes) {
  const auto golden = open_golden("taesd/decoded.safetensors");
  const auto pipeline = Pipeline::load(options_of("taesd/model"));
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  const std::vector<float> latent = golden->find("latent")->to_floats();
  const auto preview = (*pipeline)->preview(latent, {4, 6, 5});
  ASSERT_TRUE(preview) << preview.error().message;
  EXPECT_EQ(preview->width, 40);
  EXPECT_EQ(preview->height, 48);
  const auto expected = tensor_to_image(channels_last(*golden->find("image")));
  ASSERT_EQ(preview->pixels.size(), expected->pixels.size());
  for (size_t i = 0; i < preview->pixels.size(); ++i)
    ASSERT_NEAR(preview->pixels[i], expected->pixels[i], 1) << "at " << i;
}

TEST(Taesd, NetworkIsNearDiffusers) {
  const auto golden = open_golden("taesd/decoded.safetensors");
  const auto taesd = Taesd::open(golden_path("taesd/model"));
  ASSERT_TRUE(taesd) << taesd.error().message;
  const Tensor latent = channels_last(*golden->find("latent")), expected = channels_last(*golden->find("image"));
  auto graph = models::build_taesd_decoder(taesd->config, *taesd->weights, 1, 6, 5);
  ASSERT_TRUE(graph) << graph.error().message;
  const auto backend = make_cpu_backend(0);
  const auto program = backend->compile(std::move(*graph), taesd->weights, {Precision::kF32});
  ASSERT_TRUE(program) << program.error().message;
  const TensorView input = latent.view();
  auto outputs = (*program)->run({&input, 1});
  ASSERT_TRUE(outputs) << outputs.error().message;
  for (float& x : (*outputs)[0].f32()) x = 2 * x - 1;
  EXPECT_LT(relative_error((*outputs)[0].f32(), expected.f32()), 1e-4);
}

TEST(Taesd, OtherFoldersAreRefused) {
  const auto message_of = [](const std::string& folder) {
    const auto pipeline = Pipeline::load(options_of(folder));
    return pipeline ? std::string("loaded") : pipeline.error().message;
  };
  EXPECT_NE(message_of("nowhere").find("it has no config.json"), std::string::npos);
  EXPECT_NE(message_of("pipelines/sd1/vae").find("_class_name expected AutoencoderTiny"), std::string::npos)
      << message_of("pipelines/sd1/vae");
}

}  // namespace
}  // namespace sfumato
