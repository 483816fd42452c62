#include "pipeline/model.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "text/vocabulary.h"
#include "weights/file_weights.h"
#include "weights/model_folder.h"

namespace sfumato {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Least-squares maps that ComfyUI's latent formats state for the two autoencoders.
constexpr LatentRgb kSdRgb{{{{0.3512f, 0.2297f, 0.3227f},
                             {0.3250f, 0.4974f, 0.2350f},
                             {-0.2829f, 0.1762f, 0.2721f},
                             {-0.2120f, -0.2616f, -0.7177f}}},
                           {0, 0, 0}};
constexpr LatentRgb kSdxlRgb{{{{0.3651f, 0.4232f, 0.4341f},
                               {-0.2533f, -0.0042f, 0.1068f},
                               {0.1076f, 0.1111f, -0.0362f},
                               {-0.3165f, -0.2492f, -0.2188f}}},
                             {0.1084f, -0.0175f, -0.0011f}};

struct Family {
  std::string_view name;
  int steps;
  float guidance;
  const LatentRgb& latent_rgb;
};
constexpr Family kSd1{"SD1", 20, 7.5f, kSdRgb}, kSd2{"SD2", 20, 7.5f, kSdRgb}, kSdxl{"SDXL", 20, 7.5f, kSdxlRgb};

const Family& family_of(const models::UNetConfig& unet) {
  if (unet.addition_embed_type == "text_time") return kSdxl;
  return unet.cross_attention_dim == 1024 ? kSd2 : kSd1;
}

/// The id after the end token: that of the tokenizer folder's pad token, "!" or the end token itself.
int pad_id_of(const ModelFolder& folder, const std::string& tokenizer, bool is_second_or_sd2) {
  constexpr int kEnd = 49407, kExclamation = 0;
  const Json special = Json::parse(folder.text(tokenizer + "/special_tokens_map.json"), nullptr, false);
  if (special.is_object() && special.contains("pad_token")) {
    const Json& token = special["pad_token"];
    const Json& content = token.is_object() && token.contains("content") ? token["content"] : token;
    if (content.is_string()) return content == "!" ? kExclamation : kEnd;
  }
  return is_second_or_sd2 ? kExclamation : kEnd;
}

/// A tokenizer that is not CLIP's is refused.
Result<void> check_tokenizer(const ModelFolder& folder, const std::string& tokenizer) {
  const std::string merges = folder.text(tokenizer + "/merges.txt");
  if (merges.empty() || text::is_clip_merges(merges)) return {};
  return input_error(str("[pipeline.model] ", tokenizer,
                         "/merges.txt: expected CLIP's merges, got others; models with a ",
                         "vocabulary of their own are not supported"));
}

ComponentInfo describe(const std::string& name, const std::string& class_name, const WeightSource& weights) {
  ComponentInfo info{name, class_name, "", 0, 0};
  std::map<DType, int64_t> elements;
  for (const std::string& tensor : weights.names()) {
    const TensorView view = *weights.find(tensor);
    info.parameters += view.shape.elements();
    info.bytes += static_cast<int64_t>(view.bytes());
    elements[view.dtype] += view.shape.elements();
  }
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != elements.end()) info.dtype = dtype_name(most->first);
  return info;
}

/// Builds each network once, small: names every tensor that is missing, left over or of the wrong shape.
Result<void> check_weights(const Model& model) {
  for (const TextEncoder& encoder : model.text_encoders)
    TRY(models::build_clip_text(encoder.config, *encoder.weights, 1, {}));
  TRY(models::build_unet(model.unet, *model.unet_weights, 1, 8, 8, 1));
  TRY(models::build_vae_decoder(model.vae, *model.vae_weights, 1, 1, 1));
  return {};
}

/// Four rows of three numbers; a fifth is the bias.
void read_latent_rgb(const Json& rows, LatentRgb& out) {
  if (!rows.is_array() || rows.size() != 5) return;
  for (size_t k = 0; k < rows.size(); ++k) {
    std::array<float, 3>& row = k < 4 ? out.factors[k] : out.bias;
    for (size_t c = 0; c < 3 && rows[k].is_array() && rows[k].size() == 3; ++c)
      if (rows[k][c].is_number()) row[c] = rows[k][c];
  }
}

/// What a model folder may state for itself: {"sfumato": {"guidance_scale", "steps", "latent_rgb"}} in
/// model_index.json.
void apply_own_defaults(const Json& index, ModelInfo& info) {
  if (!index.contains("sfumato") || !index["sfumato"].is_object()) return;
  const Json& own = index["sfumato"];
  if (own.contains("guidance_scale") && own["guidance_scale"].is_number())
    info.default_guidance = own["guidance_scale"];
  if (own.contains("latent_rgb")) read_latent_rgb(own["latent_rgb"], info.latent_rgb);
  if (own.contains("steps") && own["steps"].is_number_integer()) info.default_steps = own["steps"];
}

}  // namespace

Result<Model> Model::open(const fs::path& path) {
  const ModelFolder folder = TRY(ModelFolder::open(path.empty() ? TRY(own_model_path("emoji")) : path));
  const Json& index = folder.index();
  Model model;
  model.info.name = folder.name();

  model.unet = TRY(models::parse_unet_config(TRY(folder.config("unet"))));
  model.unet_weights = TRY(folder.weights("unet"));
  model.vae = TRY(models::parse_vae_config(TRY(folder.config("vae"))));
  model.vae_weights = TRY(folder.weights("vae"));
  const Family& family = family_of(model.unet);
  for (const char* suffix : {"", "_2"}) {
    const std::string name = str("text_encoder", suffix);
    if (!folder.has(name)) continue;
    TRY(check_tokenizer(folder, str("tokenizer", suffix)));
    models::ClipTextConfig config = TRY(models::parse_clip_text_config(TRY(folder.config(name))));
    std::shared_ptr<const WeightSource> weights = TRY(folder.weights(name));
    model.text_encoders.push_back({std::move(config), std::move(weights),
                                   pad_id_of(folder, str("tokenizer", suffix), *suffix || &family == &kSd2)});
  }
  if (model.text_encoders.empty() || (&family == &kSdxl && model.text_encoders.size() != 2))
    return input_error(str("[pipeline.model] \"", path.string(), "\": expected ", &family == &kSdxl ? 2 : 1,
                           " text encoders, got ", model.text_encoders.size(),
                           "; SDXL refiner models are not supported yet"));
  model.info.scheduler = TRY(sampling::parse_scheduler_config(TRY(folder.scheduler())));
  model.info.scheduler.sdxl = &family == &kSdxl;
  if (&family != &kSdxl)
    model.info.scheduler.steps_offset = 1;  // as diffusers' pipeline insists, whatever the file says
  model.zero_absent_negative = &family == &kSdxl && index.value("force_zeros_for_empty_prompt", true);

  model.info.family = family.name;
  model.info.default_steps = family.steps;
  model.info.default_guidance = family.guidance;
  model.info.latent_rgb = family.latent_rgb;
  const int side = static_cast<int>(model.unet.sample_size) * model.vae_factor();
  model.info.default_size = {side, side};
  apply_own_defaults(index, model.info);
  model.info.hash = folder.hash();
  TRY(check_weights(model));
  for (const std::string& name : folder.components())
    model.info.components.push_back(describe(name, folder.class_name(name), *TRY(folder.weights(name))));
  return model;
}

Result<Taesd> Taesd::open(const fs::path& folder) {
  const auto config = MappedFile::open(folder / "config.json");
  if (!config)
    return input_error(str("[pipeline.taesd] \"", printable(folder.string()),
                           "\": expected an AutoencoderTiny's folder; it has no config.json"));
  Taesd taesd;
  taesd.config = TRY(models::parse_taesd_config(std::string((*config)->text())));
  taesd.weights = TRY(FileWeights::open(TRY(find_weight_files(folder))));
  TRY(models::build_taesd_decoder(taesd.config, *taesd.weights, 1, 1, 1));
  return taesd;
}

Result<Model> Model::open_synthetic(const std::string& name) {
  for (const char* known : {"sd15", "sd21", "sdxl"})
    if (name == known) return open(TRY(own_model_path("synthetic/" + name)));
  return usage_error(
      str("[pipeline.model] expected synthetic weights of sd15, sd21 or sdxl, got \"", printable(name), "\""));
}

Result<fs::path> own_model_path(const std::string& name) {
  std::vector<fs::path> places;
  if (const char* given = std::getenv("SFUMATO_MODELS")) places.emplace_back(given);
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed).parent_path();
  places.push_back(program / "../share/sfumato/models");  // installed
  places.push_back(program / "../../models");             // build/apps in the source folder
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&own_model_path), &library))  // a program that links the library
    places.push_back(fs::path(library.dli_fname).parent_path() / "../share/sfumato/models");
  places.push_back(SFUMATO_INSTALLED_MODELS);
  for (const fs::path& place : places)
    if (fs::exists(place / name / "model_index.json")) return (place / name).lexically_normal();
  return input_error(str("[pipeline.model] the model \"", name, "\", which comes with Sfumato, was not found in ",
                         join(places, ", "),
                         "; set SFUMATO_MODELS to the folder that holds it, or give another with -m"));
}

}  // namespace sfumato
