#pragma once
#include "image/image.h"

namespace sfumato {

/// Lanczos with three lobes, widened when shrinking, rows then columns, 8 bits between: PIL's Image.resize(LANCZOS) to
/// within a level. Returns the image itself when the size is right.
Image resize_lanczos(const Image& image, int width, int height);

}  // namespace sfumato
