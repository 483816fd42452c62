#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato bench scaling`: pictures a minute of one, two, four devices of a PJRT plugin (docs/benchmarks.md).
Result<void> bench_scaling(const Words& words);

}  // namespace sfumato
