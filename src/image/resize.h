#pragma once
#include "image/image.h"

namespace sfumato {

/// Lanczos with three lobes, widened when shrinking, rows then columns, 8 bits between: the very levels
/// of PIL's Image.resize(LANCZOS). Returns the image itself when the size is right.
Image resize_lanczos(const Image& image, int width, int height);

}  // namespace sfumato
