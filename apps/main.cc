// sfumato: text to image. `sfumato "a red apple"` is `sfumato generate "a red apple"`.
#include <cstdio>
#include <new>

#include "apps/batch/batch.h"
#include "apps/bench/bench.h"
#include "apps/compile/compile.h"
#include "apps/generate/generate.h"
#include "apps/info/info.h"
#include "apps/serve/serve.h"
#include "base/cpu.h"
#include "base/mapped_file.h"

namespace sfumato {
namespace {

Result<void> run(Words words) {
  TRY(check_isa_environment());
  const std::string first = words.empty() ? "" : words[0];
  if (first == "batch") return batch({words.begin() + 1, words.end()});
  if (first == "bench") return bench({words.begin() + 1, words.end()});
  if (first == "compile") return compile({words.begin() + 1, words.end()});
  if (first == "info") return info({words.begin() + 1, words.end()});
  if (first == "serve") return serve({words.begin() + 1, words.end()});
  if (first == kWorkerWord) return worker();
  if (first == "generate") words.erase(words.begin());
  return generate(words);
}

}  // namespace
}  // namespace sfumato

int main(int argc, char** argv) {
  sfumato::install_sigbus_message();
  try {
    const sfumato::Result<void> result = sfumato::run({argv + 1, argv + argc});
    if (result) return 0;
    std::fprintf(stderr, "sfumato: %s\n", result.error().message.c_str());
    return static_cast<int>(result.error().kind);
  } catch (const std::bad_alloc&) {
    std::fputs("sfumato: [main] out of memory; try a smaller size or batch\n", stderr);
    return static_cast<int>(sfumato::ErrorKind::kOutOfMemory);
  }
}
