#pragma once
#include <string>
#include <vector>

#include "base/result.h"

namespace sfumato {

/// `sfumato info [PICTURE | MODEL | tokens TEXT | schedule | noise]`: looks inside, so that results can be compared
/// with another program's.
Result<void> info(const std::vector<std::string>& words);

}  // namespace sfumato
