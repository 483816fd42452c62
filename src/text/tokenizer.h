#pragma once
// CLIP's byte-pair encoding: 49,408 words, 77 tokens a prompt. Radford et al. 2021; openai/CLIP, simple_tokenizer.py.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sfumato::text {

inline constexpr int32_t kStartToken = 49406, kEndToken = 49407;

class Tokenizer {
 public:
  /// CLIP's vocabulary, built into the program; unpacked on first use.
  static const Tokenizer& clip();
  ~Tokenizer();

  /// Cleans (text/clean.h), splits and encodes. Without start and end tokens; of any length.
  std::vector<int32_t> encode(std::string_view prompt) const;
  /// The text of tokens: words separated by spaces.
  std::string decode(const std::vector<int32_t>& ids) const;
  /// Every word of the vocabulary, by id.
  const std::vector<std::string>& words() const;

 private:
  Tokenizer();
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

/// A prompt as a text encoder takes it.
struct TokenizedPrompt {
  std::vector<int32_t> ids;  ///< start, the prompt, end, then `pad_id` up to `length`
  int32_t end_index = 0;     ///< of the first end token: where the pooled output is taken
  std::string dropped;       ///< what did not fit
};
TokenizedPrompt tokenize_prompt(const Tokenizer& tokenizer, std::string_view prompt, int32_t pad_id, int length = 77);

}  // namespace sfumato::text
