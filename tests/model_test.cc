// Model folders that differ from the tidy ones, made from a golden folder.
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/half.h"
#include "pipeline/pipeline.h"
#include "tests/golden.h"
#include "weights/file_weights.h"
#include "weights/save.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ModelFolders : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("model_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::copy(golden_path("pipelines/sd1"), folder_, fs::copy_options::recursive);
  }
  fs::path unet() const { return folder_ / "unet" / "diffusion_pytorch_model.safetensors"; }

  /// Rewrites a file of weights with `change` applied to its list of tensors.
  template <class Change>
  void rewrite(const fs::path& file, Change change) {
    const auto weights = FileWeights::open({file});
    std::vector<NamedTensor> tensors;
    for (const std::string& name : (*weights)->names()) tensors.push_back({name, *(*weights)->find(name)});
    change(tensors);
    ASSERT_TRUE(save_safetensors(folder_ / "new", tensors));
    fs::rename(folder_ / "new", file);
  }
  void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
    std::ifstream in(file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(file) << text;
  }
  Result<std::vector<Picture>> draw(Precision precision = Precision::kF32) {
    const std::unique_ptr<Pipeline> pipeline = TRY(Pipeline::load({folder_, 0, precision}));
    Request request;
    request.prompts = {"a cat"};
    request.size = Size{64, 64};
    request.steps = 2;
    request.seed = 1;
    return pipeline->generate(request);
  }
  std::vector<uint8_t> pixels() {
    const auto drawn = draw();
    EXPECT_TRUE(drawn) << drawn.error().message;
    return drawn ? (*drawn)[0].image.pixels : std::vector<uint8_t>();
  }
  std::string error() {
    const auto drawn = draw();
    return drawn ? "drawn" : drawn.error().message;
  }

  fs::path folder_;
};

TEST_F(ModelFolders, NineChannelUNetsAreNamedNotMisused) {
  std::vector<float> zeros(16 * 9 * 9);
  const Tensor wide = Tensor::from({16, 9, 3, 3}, zeros);
  rewrite(unet(), [&](std::vector<NamedTensor>& tensors) {
    for (NamedTensor& t : tensors)
      if (t.name == "conv_in.weight") t.view = wide.view();
  });
  EXPECT_THAT(error(), HasSubstr("conv_in.weight is 16x9x3x3, expected 16x4x3x3"));
  replace_in(folder_ / "unet/config.json", "\"in_channels\": 4", "\"in_channels\": 9");
  EXPECT_THAT(error(), HasSubstr("expected a U-Net with 4 input channels, got 9"));
}

TEST_F(ModelFolders, AnotherVocabularyIsRefused) {
  fs::copy_file(SFUMATO_SOURCE_DIR "/models/emoji/tokenizer/merges.txt", folder_ / "tokenizer" / "merges.txt");
  EXPECT_EQ(error(), "drawn");  // CLIP's
  replace_in(folder_ / "tokenizer" / "merges.txt", "jeky ll</w>", "jek yll</w>");
  EXPECT_THAT(error(), HasSubstr("tokenizer/merges.txt: expected CLIP's merges, got others"));
}

TEST_F(ModelFolders, OnlyFp16NamesLoadWithoutAFlag) {
  const auto expected = pixels();
  for (const char* name : {"unet/diffusion_pytorch_model", "vae/diffusion_pytorch_model", "text_encoder/model"})
    fs::rename(folder_ / (std::string(name) + ".safetensors"), folder_ / (std::string(name) + ".fp16.safetensors"));
  EXPECT_EQ(pixels(), expected);
}

TEST_F(ModelFolders, ShardsGiveTheSameAndAMergedCopyIsNotLoadedTwice) {
  const auto expected = pixels();
  std::string map;
  const auto weights = FileWeights::open({unet()});
  std::vector<NamedTensor> halves[2];
  for (const std::string& name : (*weights)->names()) {
    const size_t half = map.size() / 7 % 2;
    halves[half].push_back({name, *(*weights)->find(name)});
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"diffusion_pytorch_model-0000" + (half ? "2" : "1") +
           "-of-00002.safetensors\"";
  }
  ASSERT_TRUE(save_safetensors(folder_ / "unet/diffusion_pytorch_model-00001-of-00002.safetensors", halves[0]));
  ASSERT_TRUE(save_safetensors(folder_ / "unet/diffusion_pytorch_model-00002-of-00002.safetensors", halves[1]));
  std::ofstream(folder_ / "unet/diffusion_pytorch_model.safetensors.index.json") << "{\"weight_map\":{" << map << "}}";
  EXPECT_EQ(pixels(), expected);
}

TEST_F(ModelFolders, OldFilesWithPositionIdsAndOddSchedulerKeys) {
  const auto expected = pixels();
  const Tensor ids = Tensor::zeros({1, 77});
  rewrite(folder_ / "text_encoder/model.safetensors", [&](std::vector<NamedTensor>& tensors) {
    tensors.push_back({"text_model.embeddings.position_ids", ids.view()});
  });
  replace_in(folder_ / "scheduler/scheduler_config.json", "{", "{\"nobody_knows_this\": [1, 2],");
  EXPECT_EQ(pixels(), expected);
}

// As SDXL's decoder: 16-bit weights whose activations leave fp16's range (65504), which only sums in float survive.
TEST_F(ModelFolders, HugeActivationsOf16BitWeightsStayFinite) {
  const auto decoder = folder_ / "vae/diffusion_pytorch_model.safetensors";
  std::deque<std::vector<uint16_t>> halves;
  rewrite(decoder, [&](std::vector<NamedTensor>& tensors) {
    for (NamedTensor& t : tensors) {
      std::vector<uint16_t>& half = halves.emplace_back();
      const std::vector<float> values = t.view.to_floats();
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      const float factor = t.name == "decoder.conv_in.weight" ? 3e4f / std::max(-*low, *high) : 1;
      for (const float value : values) half.push_back(f32_to_f16(value * factor));
      t.view = {half.data(), t.view.shape, DType::kF16};
    }
  });
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    const auto drawn = draw(precision);
    ASSERT_TRUE(drawn) << drawn.error().message;
    EXPECT_GT(std::set<uint8_t>((*drawn)[0].image.pixels.begin(), (*drawn)[0].image.pixels.end()).size(), 8u);
  }
}

TEST_F(ModelFolders, AnSdxlRefinerIsRefusedByName) {
  fs::remove_all(folder_);
  fs::copy(golden_path("pipelines/sdxl"), folder_, fs::copy_options::recursive);
  fs::remove_all(folder_ / "text_encoder");
  EXPECT_THAT(error(), HasSubstr("SDXL refiner models are not supported yet"));
}

TEST_F(ModelFolders, AComponentThatIsNotThereIsNamed) {
  fs::remove_all(folder_ / "vae");
  EXPECT_THAT(error(), HasSubstr("it has no vae/config.json"));
}

TEST_F(ModelFolders, PredictionTypeIsHeeded) {
  const auto expected = pixels();
  replace_in(folder_ / "scheduler/scheduler_config.json", "\"prediction_type\": \"epsilon\"",
             "\"prediction_type\": \"v_prediction\"");
  EXPECT_NE(pixels(), expected);
}

}  // namespace
}  // namespace sfumato
