#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato batch MANIFEST -o FOLDER`: draws the pictures of a manifest, or this process's share of them; can be
/// stopped and started again at any time (docs/batch.md).
Result<void> batch(const Words& words);

}  // namespace sfumato
