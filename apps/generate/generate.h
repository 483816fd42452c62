#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato [generate] PROMPT [options]`: draws, and writes pictures.
Result<void> generate(const Words& words);

}  // namespace sfumato
