#pragma once
#include <string>

namespace sfumato::text {

/// CLIP's merges, unpacked: bpe_simple_vocab_16e6.txt (third_party/clip, MIT), which is part of the program.
std::string clip_merges();

}  // namespace sfumato::text
