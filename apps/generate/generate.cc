#include "apps/generate/generate.h"

#include <csignal>
#include <cstdlib>

#include "apps/generate/output.h"
#include "apps/generate/progress.h"
#include "base/strings.h"
#include "base/version.h"
#include "image/image_io.h"
#include "weights/save.h"

namespace sfumato {
namespace {

volatile std::sig_atomic_t interrupted = 0;

/// The first Ctrl-C stops within a step, the second at once.
void stop_on_interrupt() {
  std::signal(SIGINT, [](int) {
    if (interrupted) std::_Exit(static_cast<int>(ErrorKind::kCancelled));
    interrupted = 1;
  });
}

/// Nothing: there is nothing to draw (--help).
Result<std::optional<RunOptions>> parse(const Words& words) {
  Command command("sfumato", "Text to image with Stable Diffusion, on the CPU.\n  sfumato \"a red apple\"");
  command.app.set_version_flag("--version", str("sfumato ", kVersion));
  command.app.footer("\nLooking inside: sfumato info --help");
  command.take();
  if (!TRY(command.parse(words))) return std::optional<RunOptions>();
  RunOptions& run = command.run;
  if (run.request.prompts.empty())
    return usage_error("[cli] expected a prompt, as in: sfumato \"a red apple\"; see --help");
  TRY(check_output(run.output));
  if (!run.latents_output.empty()) TRY(check_folder("--latents-out", run.latents_output));
  if (!run.is_seed_given) run.request.seed = random_seed();
  return std::optional<RunOptions>(std::move(run));
}

Result<void> write_latents(const std::filesystem::path& path, const std::vector<Picture>& pictures) {
  std::vector<NamedTensor> latents;
  for (size_t i = 0; i < pictures.size(); ++i) latents.push_back({str("latents.", i), pictures[i].latents.view()});
  return save_safetensors(path, latents);
}

}  // namespace

Result<void> generate(const Words& words) {
  std::optional<RunOptions> run = TRY(parse(words));
  if (!run) return {};
  stop_on_interrupt();
  const std::unique_ptr<Pipeline> pipeline = TRY(Pipeline::load(run->pipeline));
  ProgressReporter progress(*run, *pipeline);
  run->request.on_progress = [&](const Progress& p) {
    progress.show(p);
    return interrupted == 0;
  };
  const size_t count = run->request.prompts.size() * static_cast<size_t>(run->request.images);
  run->request.on_picture = [&](size_t i, const Picture& picture) -> Result<void> {
    const std::filesystem::path path = output_path(run->output, i + 1, count);
    TRY(write_image(path, picture.image, picture.parameters));
    progress.written(path, picture);
    return {};
  };
  const Result<std::vector<Picture>> pictures = pipeline->generate(run->request);
  progress.finish(pipeline->warnings());
  if (!pictures) return pictures.error();
  if (!run->latents_output.empty()) TRY(write_latents(run->latents_output, *pictures));
  return {};
}

}  // namespace sfumato
