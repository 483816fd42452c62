#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "base/utf8.h"
#include "text/clean.h"
#include "text/unicode.h"
#include "text/vocabulary.h"

namespace sfumato::text {
namespace {

constexpr int kMerges = 49152 - 256 - 2;  // of the file's 262,144, the ones CLIP uses
constexpr std::string_view kEndOfWord = "</w>", kStartText = "<|startoftext|>", kEndText = "<|endoftext|>";

/// The printable character that stands for each byte in the vocabulary: itself, or the next from U+0100 on. `order`
/// gets the bytes in the order of their ids.
std::array<std::string, 256> byte_symbols(std::vector<int>& order) {
  std::array<std::string, 256> symbols;
  const auto is_printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  for (const bool printable : {true, false}) {
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      if (is_printable(b) != printable) continue;
      append_utf8(symbols[static_cast<size_t>(b)], printable ? b : next++);
      order.push_back(b);
    }
  }
  return symbols;
}

/// CLIP's pattern on cleaned (lower-case) text: the two special words, 's|'t|'re|'ve|'m|'ll|'d, letters, one digit,
/// a run of anything else but spaces.
std::vector<std::string> split_words(const std::string& text) {
  const std::vector<int32_t> codes = to_code_points(text);
  const auto starts = [&](size_t at, std::string_view word) {
    for (size_t i = 0; i < word.size(); ++i)
      if (at + i >= codes.size() || codes[at + i] != word[i]) return false;
    return true;
  };
  std::vector<std::string> words;
  for (size_t at = 0; at < codes.size();) {
    size_t length = 0;
    for (const std::string_view word :
         {kStartText, kEndText, std::string_view("'s"), std::string_view("'t"), std::string_view("'re"),
          std::string_view("'ve"), std::string_view("'m"), std::string_view("'ll"), std::string_view("'d")})
      if (length == 0 && starts(at, word)) length = word.size();
    const auto run = [&](auto belongs) {
      while (at + length < codes.size() && belongs(codes[at + length])) ++length;
    };
    if (length == 0 && is_space(codes[at])) {
      ++at;
      continue;
    }
    if (length == 0 && is_number(codes[at])) length = 1;
    if (length == 0 && is_letter(codes[at])) run(is_letter);
    if (length == 0) run([](int32_t c) { return !is_space(c) && !is_letter(c) && !is_number(c); });
    words.push_back(to_utf8({codes.begin() + static_cast<long>(at), codes.begin() + static_cast<long>(at + length)}));
    at += length;
  }
  return words;
}

}  // namespace

struct Tokenizer::Tables {
  std::array<std::string, 256> symbols;                 // byte -> its character
  std::vector<std::string> words;                       // id -> word
  std::unordered_map<std::string, int32_t> ids;         // word -> id
  std::unordered_map<std::string, int> rank;            // "first second" -> order of the merge
  std::unordered_map<std::string, int> byte_of_symbol;  // the inverse of symbols
};

Tokenizer::Tokenizer() : tables_(std::make_unique<Tables>()) {
  Tables& t = *tables_;
  std::vector<int> order;
  t.symbols = byte_symbols(order);
  for (const std::string_view suffix : {std::string_view(), kEndOfWord})
    for (const int b : order) t.words.push_back(t.symbols[static_cast<size_t>(b)] + std::string(suffix));
  for (int b = 0; b < 256; ++b) t.byte_of_symbol[t.symbols[static_cast<size_t>(b)]] = b;
  const std::string merges = clip_merges();
  size_t at = merges.find('\n') + 1;  // the first line is a comment
  for (int i = 0; i < kMerges; ++i) {
    const size_t end = merges.find('\n', at), space = merges.find(' ', at);
    CHECK(end != std::string::npos && space < end, "the built-in vocabulary is damaged");
    t.words.push_back(merges.substr(at, space - at) + merges.substr(space + 1, end - space - 1));
    t.rank.emplace(merges.substr(at, end - at), i);
    at = end + 1;
  }
  t.words.emplace_back(kStartText);
  t.words.emplace_back(kEndText);
  for (size_t i = 0; i < t.words.size(); ++i) t.ids.emplace(t.words[i], static_cast<int32_t>(i));
}

Tokenizer::~Tokenizer() = default;

const Tokenizer& Tokenizer::clip() {
  static const Tokenizer tokenizer;
  return tokenizer;
}

const std::vector<std::string>& Tokenizer::words() const {
  return tables_->words;
}

std::vector<int32_t> Tokenizer::encode(std::string_view prompt) const {
  const Tables& t = *tables_;
  std::vector<int32_t> ids;
  for (const std::string& word : split_words(clean_prompt(prompt))) {
    if (word == kStartText || word == kEndText) {
      ids.push_back(t.ids.at(word));
      continue;
    }
    std::vector<std::string> parts;
    for (const char c : word) parts.push_back(t.symbols[static_cast<uint8_t>(c)]);
    parts.back() += kEndOfWord;
    const auto rank_at = [&](size_t i) {
      if (i + 1 >= parts.size()) return kMerges;
      const auto found = t.rank.find(parts[i] + " " + parts[i + 1]);
      return found == t.rank.end() ? kMerges : found->second;
    };
    while (parts.size() > 1) {  // join the pair that was merged first in training, wherever it stands
      int best = kMerges;
      for (size_t i = 0; i + 1 < parts.size(); ++i) best = std::min(best, rank_at(i));
      if (best == kMerges) break;
      std::vector<std::string> joined;
      for (size_t i = 0; i < parts.size(); ++i) {
        const bool is_pair = rank_at(i) == best;
        joined.push_back(is_pair ? parts[i] + parts[i + 1] : parts[i]);
        i += is_pair ? 1 : 0;
      }
      parts = std::move(joined);
    }
    for (const std::string& part : parts) ids.push_back(t.ids.at(part));
  }
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  const Tables& t = *tables_;
  std::string out;
  for (const int32_t id : ids) {
    std::string word = t.words.at(static_cast<size_t>(id));
    const bool ends = word.ends_with(kEndOfWord);
    if (ends) word.resize(word.size() - kEndOfWord.size());
    for (const int32_t code : to_code_points(word)) {
      std::string symbol;
      append_utf8(symbol, code);
      out += static_cast<char>(t.byte_of_symbol.at(symbol));
    }
    if (ends) out += ' ';
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

TokenizedPrompt tokenize_prompt(const Tokenizer& tokenizer, std::string_view prompt, int32_t pad_id, int length) {
  std::vector<int32_t> ids = tokenizer.encode(prompt);
  TokenizedPrompt out;
  const auto room = static_cast<size_t>(length - 2);
  if (ids.size() > room) {
    out.dropped = tokenizer.decode({ids.begin() + static_cast<long>(room), ids.end()});
    ids.resize(room);
  }
  out.ids = {kStartToken};
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.ids.push_back(kEndToken);
  out.end_index = static_cast<int32_t>(std::find(out.ids.begin(), out.ids.end(), kEndToken) - out.ids.begin());
  out.ids.resize(static_cast<size_t>(length), pad_id);
  return out;
}

}  // namespace sfumato::text
