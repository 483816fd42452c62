#pragma once
#include <string>

namespace sfumato::text {

/// CLIP's merges, unpacked: bpe_simple_vocab_16e6.txt (third_party/clip, MIT), which is part of the program.
std::string clip_merges();

/// Is `merges`, a tokenizer's merges.txt, CLIP's? A model that was trained with another one cannot be served: every
/// prompt would be spelled wrong.
bool is_clip_merges(std::string merges);

}  // namespace sfumato::text
