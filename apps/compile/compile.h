#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato compile`: a model's programs for an accelerator that need not be there, and what they would take.
Result<void> compile(const Words& words);

}  // namespace sfumato
