#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato info [PICTURE | MODEL | tokens TEXT | schedule | noise]`: looks inside, so that results can be compared
/// with another program's.
Result<void> info(const Words& words);

}  // namespace sfumato
