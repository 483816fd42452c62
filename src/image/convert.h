#pragma once
// Between pictures and what networks take.
#include "base/result.h"
#include "image/image.h"
#include "tensor/tensor.h"

namespace sfumato {

/// Three channels: grey is repeated, alpha is dropped (the colour under it counts), as PIL's convert("RGB").
Image to_rgb(const Image& image);
/// One channel: (299 R + 587 G + 114 B) / 1000, as PIL's convert("L"); alpha is dropped.
Image to_gray(const Image& image);

/// A mask as OpenAI's edits mean it: white where the picture is transparent; one without alpha is to_gray() of it.
Image transparency(const Image& image);

/// RGB -> [1,height,width,3] in -1..1.
Tensor image_to_tensor(const Image& rgb);
/// [1,height,width,3] -> RGB: x/2 + 0.5 kept within 0..1, times 255, rounded to even, as diffusers does. A NaN or
/// infinity is an error that counts them: no picture is better than a black one.
Result<Image> tensor_to_image(const Tensor& tensor);

}  // namespace sfumato
