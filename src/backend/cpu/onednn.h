#pragma once
// oneDNN's convolution and matrix product, in float or with bfloat16 products and float sums: where the machine has AMX
// the latter are the fastest there are. Everything runs one image at a time, so that a picture's bits do not depend on
// the batch.
#include "backend/cpu/program.h"

namespace sfumato::cpu {

/// Can oneDNN compute bfloat16 products here faster than float ones? True with AMX.
bool onednn_bf16_pays();

/// A step for context.node, a Conv2d or Linear, at context.precision. Takes context.keep for the blocked weights and
/// context.scratch_bytes for rounded inputs. Errors: out of memory, or a primitive that oneDNN does not have.
Result<Step> lower_onednn(NodeContext& context);

}  // namespace sfumato::cpu
