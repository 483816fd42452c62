// The real families' tensors, by name and shape, are consumed exactly: none missing, none left (tools/golden/keys.py).
#include <fstream>
#include <map>
#include <sstream>

#include "base/strings.h"
#include "models/clip.h"
#include "models/unet.h"
#include "models/vae.h"
#include "tests/golden.h"
#include "weights/random_weights.h"

namespace sfumato {
namespace {

/// Tensors with a shape but no data: enough to build a graph.
class ShapesOnly final : public WeightSource {
 public:
  explicit ShapesOnly(const std::string& path) : shapes_(read_shapes(path).value()) {}
  std::optional<TensorView> find(const std::string& name) const override {
    const auto found = shapes_.find(name);
    if (found == shapes_.end()) return std::nullopt;
    return TensorView{nullptr, found->second, DType::kF16};
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, shape] : shapes_) out.push_back(name);
    return out;
  }
  void erase(const std::string& name) { shapes_.erase(name); }
  void add(const std::string& name, Shape shape) { shapes_[name] = std::move(shape); }

 private:
  std::map<std::string, Shape> shapes_;
};

Result<ir::Graph> build(const std::string& component, const std::string& config, const WeightSource& weights) {
  if (component == "unet") return models::build_unet(TRY(models::parse_unet_config(config)), weights, 2, 64, 64, 77);
  if (component == "vae") {
    const models::VaeConfig c = TRY(models::parse_vae_config(config));
    TRY(models::build_vae_encoder(c, weights, 1, 512, 512));
    return models::build_vae_decoder(c, weights, 1, 64, 64);
  }
  return models::build_clip_text(TRY(models::parse_clip_text_config(config)), weights, 1, {});
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Keys : public testing::TestWithParam<const char*> {};

TEST_P(Keys, AreConsumedExactly) {
  const std::string folder = std::string(SFUMATO_SOURCE_DIR "/") + GetParam();
  const std::string component = split(GetParam(), '/').back(), config = read(folder + "/config.json");
  ShapesOnly weights(folder + "/shapes.gz");
  ASSERT_GT(weights.names().size(), 100u);
  const auto graph = build(component, config, weights);
  EXPECT_TRUE(graph) << graph.error().message;

  weights.add("someone.elses.weight", {3});
  EXPECT_NE(build(component, config, weights).error().message.find("1 tensor unexpected: someone.elses.weight"),
            std::string::npos);
  weights.erase("someone.elses.weight");
  weights.add("text_model.embeddings.position_ids", {1, 77});  // old files carry it: ignored
  EXPECT_TRUE(build(component, config, weights));
  const std::string name = weights.names()[50];
  const Shape shape = weights.find(name)->shape;
  weights.erase(name);
  EXPECT_NE(build(component, config, weights).error().message.find("1 tensor missing: " + name), std::string::npos);
  weights.add(name, Shape{7});
  EXPECT_NE(build(component, config, weights).error().message.find(name + " is 7, expected " + shape.to_string()),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Families, Keys,
                         testing::Values("models/synthetic/sd15/unet", "models/synthetic/sd15/vae",
                                         "models/synthetic/sd15/text_encoder", "tests/golden/keys/sd15-inpainting/unet",
                                         "models/synthetic/sd21/unet", "models/synthetic/sd21/text_encoder",
                                         "models/synthetic/sdxl/unet", "models/synthetic/sdxl/vae",
                                         "models/synthetic/sdxl/text_encoder", "models/synthetic/sdxl/text_encoder_2"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(Configs, FaultsNameTheField) {
  const auto message = [](const std::string& json) { return models::parse_unet_config(json).error().message; };
  EXPECT_EQ(message("[]"), "[models.config] unet/config.json: expected a JSON object");
  EXPECT_NE(message(R"({"block_out_channels":[320,"x"]})").find("block_out_channels expected a list of sizes"),
            std::string::npos);
  EXPECT_NE(message(R"({"attention_head_dim":[1,2]})").find("attention_head_dim expected 4 entries, got 2"),
            std::string::npos);
  EXPECT_NE(message(R"({"class_embed_type":"timestep"})").find("class_embed_type = \"timestep\" is not supported"),
            std::string::npos);
  EXPECT_NE(message(R"({"cross_attention_dim":-1})").find("cross_attention_dim expected an integer from 1"),
            std::string::npos);
  EXPECT_NE(message(R"({"norm_num_groups":7})").find("multiple of norm_num_groups 7"), std::string::npos);
  EXPECT_NE(message(R"({"in_channels":1e300})").find("in_channels expected an integer"), std::string::npos);
}

}  // namespace
}  // namespace sfumato
