#include "passes/passes.h"

#include "base/check.h"

namespace sfumato::passes {

void run_all(ir::Graph& graph) {
  for (const Pass& pass : kAll) {
    pass.run(graph);
    const Result<void> ok = ir::verify(graph);
    if (!ok) CHECK(false, ok.error().message);
  }
}

}  // namespace sfumato::passes
