#include "pipeline/programs.h"

#include "base/strings.h"

namespace sfumato {

Result<ir::Graph> build_text_encoder(const Model& model, int index, int batch, int clip_skip) {
  const TextEncoder& encoder = model.text_encoders.at(static_cast<size_t>(index));
  const bool is_xl = model.has_size_conditioning();
  return models::build_clip_text(encoder.config, *encoder.weights, batch, {clip_skip - 1 + (is_xl ? 1 : 0), !is_xl});
}

template <class Build>
Result<Executable*> Programs::get(const std::string& network, std::string shape,
                                  const std::shared_ptr<const WeightSource>& weights, const CompileOptions& options,
                                  Build build) {
  Entry& entry = entries_[network];
  if (entry.shape == shape) return entry.program.get();
  entry = {};  // before the new one takes its memory
  ir::Graph graph = TRY(build());
  entry.program = TRY(backend_.compile(std::move(graph), weights, options));
  entry.shape = std::move(shape);
  return entry.program.get();
}

Result<Executable*> Programs::text_encoder(int index, int clip_skip) {
  return get(str("text ", index), str("skip ", clip_skip), model_.text_encoders.at(static_cast<size_t>(index)).weights,
             {precision_, /*on_every_device=*/false, {}, /*runs_seldom=*/true},
             [&] { return build_text_encoder(model_, index, 1, clip_skip); });
}

Result<Executable*> Programs::unet(int batch, int height, int width, int tokens) {
  return get("unet", str(batch, " ", height, "x", width, " ", tokens), model_.unet_weights,
             {precision_, /*on_every_device=*/true, models::kUNetSlowInputs},
             [&] { return models::build_unet(model_.unet, *model_.unet_weights, batch, height, width, tokens); });
}

Result<Executable*> Programs::vae_decoder(int height, int width, Precision precision) {
  return get("decode", str(height, "x", width, " ", precision_name(precision)), model_.vae_weights,
             {precision, /*on_every_device=*/true},
             [&] { return models::build_vae_decoder(model_.vae, *model_.vae_weights, 1, height, width); });
}

Result<Executable*> Programs::taesd_decoder(int height, int width) {
  const Taesd& taesd = *model_.taesd;
  return get("taesd", str(height, "x", width), taesd.weights, {precision_},
             [&] { return models::build_taesd_decoder(taesd.config, *taesd.weights, 1, height, width); });
}

Result<Executable*> Programs::vae_encoder(int height, int width) {
  return get("encode", str(height, "x", width), model_.vae_weights, {precision_},
             [&] { return models::build_vae_encoder(model_.vae, *model_.vae_weights, 1, height, width); });
}

}  // namespace sfumato
