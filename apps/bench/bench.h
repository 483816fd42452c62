#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato bench`: how long a model's parts take on this machine (docs/benchmarks.md).
Result<void> bench(const Words& words);

}  // namespace sfumato
