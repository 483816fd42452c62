#include "pipeline/init_image.h"

#include "image/convert.h"
#include "image/resize.h"
#include "sampling/sampler.h"

namespace sfumato {

Result<InitLatents> encode_init_image(const Model& model, Programs& programs, const Plan& plan, const Request& request,
                                      size_t pictures, sampling::BatchNoise& noise) {
  const auto fitted = [&](const Image& image) { return resize_lanczos(image, plan.size.width, plan.size.height); };
  const Tensor pixels = image_to_tensor(fitted(to_rgb(*request.init_image)));
  Executable* encoder = TRY(programs.vae_encoder(plan.size.height, plan.size.width));
  const TensorView input[] = {pixels.view()};
  const std::vector<Tensor> moments = TRY(encoder->run(input));

  InitLatents out;
  const size_t one = plan.latent.elements();
  std::vector<float> draws(one * pictures);
  noise(draws);
  out.latents.resize(draws.size());
  for (size_t at = 0; at < draws.size(); at += one)
    sample_moments(moments[0].f32().data(), plan.latent, std::span(draws).subspan(at, one), model.vae.scaling_factor,
                   std::span(out.latents).subspan(at, one));
  if (request.mask) out.mask = latent_mask(fitted(to_gray(*request.mask)), plan.latent);
  return out;
}

void keep_unmasked(const InitLatents& init, const Plan& plan, const sampling::Level& level,
                   std::span<const float> noise, std::span<float> latents) {
  std::vector<float> noised(latents.size());
  sampling::add_noise(level, init.latents, noise, noised);
  const size_t area = static_cast<size_t>(plan.latent.height) * static_cast<size_t>(plan.latent.width);
  for (size_t i = 0; i < latents.size(); ++i)
    if (init.mask[i % area] == 0) latents[i] = noised[i];
}

}  // namespace sfumato
