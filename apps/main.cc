// sfumato: text to image. `sfumato "a red apple"` is `sfumato generate "a red apple"`.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
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

/// Threads of libgomp that wait spin for milliseconds, and on cores that other programs keep busy they spin in the way
/// of those they wait for: a small model then takes twenty times as long (docs/performance.md). libgomp reads how long
/// when it is loaded, so the program starts once more, unless whoever started it said how threads shall wait.
void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
  setenv("GOMP_SPINCOUNT", "1000", 0);
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) execv(self.c_str(), argv);  // returns only if that cannot be done; then as before
}

}  // namespace
}  // namespace sfumato

int main(int argc, char** argv) {
  sfumato::wait_briefly(argv);
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
