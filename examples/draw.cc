// draw PROMPT PICTURE [MODEL]: one picture with the library.
#include <cstdio>

#include <sfumato/image/image_io.h>
#include <sfumato/pipeline/pipeline.h>

sfumato::Result<void> draw(const char* prompt, const char* file, const char* model) {
  const auto pipeline = TRY(sfumato::Pipeline::load({.model = model}));
  sfumato::Request request;
  request.prompts = {prompt};
  request.seed = 42;
  request.on_progress = [](const sfumato::Progress& p) { return std::printf("step %d of %d\n", p.step, p.steps) > 0; };
  const auto pictures = TRY(pipeline->generate(request));
  return sfumato::write_image(file, pictures[0].image, pictures[0].parameters);
}

int main(int argc, char** argv) {
  if (argc < 3) return std::puts("usage: draw PROMPT PICTURE [MODEL]"), 2;
  const auto done = draw(argv[1], argv[2], argc > 3 ? argv[3] : "");
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : static_cast<int>(done.error().kind);
}
