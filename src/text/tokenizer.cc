#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

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

using Ranks = std::unordered_map<std::string, int>;  // "first second" -> order of the merge

/// Byte-pair encoding of one word: of all neighbours, the pair that was merged first in training is joined, the
/// leftmost of equals, until none is known. A heap of pairs over a linked list: n log n.
std::vector<std::string> merged(const Ranks& ranks, std::vector<std::string> parts) {
  struct Pair {
    int rank;
    size_t left, right;
    size_t bytes;  // of both parts when it was found: parts only grow, so another sum means that it is gone
    bool operator>(const Pair& other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
  };
  const size_t count = parts.size(), none = count;
  std::vector<size_t> next(count), previous(count, none);
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs;
  const auto consider = [&](size_t left) {
    const size_t right = left == none ? none : next[left];
    if (right == none) return;
    if (const auto found = ranks.find(parts[left] + " " + parts[right]); found != ranks.end())
      pairs.push({found->second, left, right, parts[left].size() + parts[right].size()});
  };
  for (size_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    if (i > 0) previous[i] = i - 1;
  }
  for (size_t i = 0; i < count; ++i) consider(i);
  while (!pairs.empty()) {
    const Pair pair = pairs.top();
    pairs.pop();
    const bool is_there = !parts[pair.left].empty() && next[pair.left] == pair.right &&
                          parts[pair.left].size() + parts[pair.right].size() == pair.bytes;
    if (!is_there) continue;
    parts[pair.left] += std::exchange(parts[pair.right], "");
    next[pair.left] = next[pair.right];
    if (next[pair.right] != none) previous[next[pair.right]] = pair.left;
    consider(previous[pair.left]);
    consider(pair.left);
  }
  std::erase(parts, "");
  return parts;
}

}  // namespace

struct Tokenizer::Tables {
  std::array<std::string, 256> symbols;          // byte -> its character
  std::vector<std::string> words;                // id -> word
  std::unordered_map<std::string, int32_t> ids;  // word -> id
  Ranks rank;
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
    for (const std::string& part : merged(t.rank, std::move(parts))) ids.push_back(t.ids.at(part));
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
    constexpr size_t kTold = 300;  // tokens: enough to see where the prompt was cut
    const size_t end = std::min(ids.size(), room + kTold);
    // May begin within a character: what is left of it is a replacement character.
    out.dropped = to_utf8(to_code_points(
        tokenizer.decode({ids.begin() + static_cast<long>(room), ids.begin() + static_cast<long>(end)})));
    if (end < ids.size()) out.dropped += " ...";
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
