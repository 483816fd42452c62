#include "text/clean.h"

#include <utf8proc.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "base/utf8.h"
#include "text/unicode.h"

namespace sfumato::text {
namespace {

struct Entity {
  std::string_view name, text;
};
constexpr Entity kEntities[] = {
#include "text/html_entities.inc"
};

std::optional<std::string_view> named(std::string_view name) {
  const auto found = std::lower_bound(std::begin(kEntities), std::end(kEntities), name,
                                      [](const Entity& e, std::string_view n) { return e.name < n; });
  if (found == std::end(kEntities) || found->name != name) return std::nullopt;
  return found->text;
}

/// The code points that HTML5 gives to references into the C1 controls: Windows-1252.
constexpr int32_t kWindows1252[] = {0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
                                    0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d,   0x017d, 0x8f,
                                    0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                    0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178};

/// "&#233;" and "&#xe9;": the text after "&#", how much of it was used, and what it stands for.
std::optional<std::string> numeric(std::string_view after, size_t& used) {
  const bool is_hex = after.starts_with('x') || after.starts_with('X');
  size_t at = is_hex ? 1 : 0;
  const size_t digits = at;
  int64_t value = 0;
  const auto is_digit = [&](char c) {
    return is_hex ? std::isxdigit(static_cast<unsigned char>(c)) : c >= '0' && c <= '9';
  };
  for (; at < after.size() && is_digit(after[at]); ++at) {
    const char c = after[at];
    value = std::min<int64_t>(0x110000, value * (is_hex ? 16 : 10) + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10));
  }
  if (at == digits) return std::nullopt;
  used = at + (at < after.size() && after[at] == ';' ? 1 : 0);
  std::string out;
  if (value >= 0x80 && value < 0xa0) value = kWindows1252[value - 0x80];
  if (value == 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    append_utf8(out, 0xfffd);
  else if (value >= 0x20 || value == '\t' || value == '\n' || value == '\f' || value == '\r')
    append_utf8(out, static_cast<int32_t>(value));
  return out;
}

/// The longest name that `after` (what follows the "&") begins with.
std::optional<std::string_view> longest_name(std::string_view after, size_t& used) {
  constexpr size_t kLongest = 32;
  size_t length = 0;
  while (length < after.size() && length < kLongest && std::isalnum(static_cast<unsigned char>(after[length])))
    ++length;
  if (length < after.size() && after[length] == ';') ++length;
  for (used = length; used > 1; --used)
    if (const auto text = named(after.substr(0, used))) return text;
  return std::nullopt;
}

struct Replacement {
  int32_t code;
  std::string_view text;
};
/// ftfy's uncurl_quotes and fix_latin_ligatures.
constexpr Replacement kReplacements[] = {
    {0x132, "IJ"},      {0x133, "ij"},      {0x149, "\u02bcn"}, {0x1f1, "DZ"},   {0x1f2, "Dz"},   {0x1f3, "dz"},
    {0x1c4, "D\u017d"}, {0x1c5, "D\u017e"}, {0x1c6, "d\u017e"}, {0x1c7, "LJ"},   {0x1c8, "Lj"},   {0x1c9, "lj"},
    {0x1ca, "NJ"},      {0x1cb, "Nj"},      {0x1cc, "nj"},      {0x2bc, "'"},    {0x2018, "'"},   {0x2019, "'"},
    {0x201a, "'"},      {0x201b, "'"},      {0x201c, "\""},     {0x201d, "\""},  {0x201e, "\""},  {0x201f, "\""},
    {0xfb00, "ff"},     {0xfb01, "fi"},     {0xfb02, "fl"},     {0xfb03, "ffi"}, {0xfb04, "ffl"}, {0xfb05, "\u017ft"},
    {0xfb06, "st"}};

bool is_control(int32_t code) {
  const bool is_break = code == '\t' || code == '\n' || code == '\f' || code == '\r';
  return (code < 0x20 && !is_break) || code == 0x7f || (code >= 0x206a && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffc);
}

std::string repair(std::string_view text) {
  std::string out;
  for (int32_t code : to_code_points(text)) {
    if (is_control(code)) continue;
    if (code >= 0xff01 && code <= 0xff5e) code -= 0xfee0;
    const auto found = std::find_if(std::begin(kReplacements), std::end(kReplacements),
                                    [&](const Replacement& r) { return r.code == code; });
    if (found != std::end(kReplacements))
      out += found->text;
    else
      append_utf8(out, code);
  }
  return out;
}

std::string compose(const std::string& text) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out = length < 0 ? text : std::string(reinterpret_cast<char*>(composed), static_cast<size_t>(length));
  std::free(composed);
  return out;
}

std::string lower(const std::string& text) {
  const std::vector<int32_t> codes = to_code_points(text);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    constexpr int32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2, kCapitalDottedI = 0x130;
    const bool ends_word = i > 0 && is_letter(codes[i - 1]) && (i + 1 == codes.size() || !is_letter(codes[i + 1]));
    if (codes[i] == kCapitalDottedI)
      out += "i\u0307";
    else
      append_utf8(out, codes[i] == kCapitalSigma && ends_word ? kFinalSigma : utf8proc_tolower(codes[i]));
  }
  return out;
}

std::string collapse_spaces(const std::string& text) {
  std::string out;
  bool pending = false;
  for (const int32_t code : to_code_points(text)) {
    if (is_space(code)) {
      pending = !out.empty();
      continue;
    }
    if (pending) out += ' ';
    pending = false;
    append_utf8(out, code);
  }
  return out;
}

}  // namespace

std::string html_unescape(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t used = 0;
    if (text[at] == '&') {
      const std::string_view after = text.substr(at + 1);
      if (after.starts_with('#')) {
        if (const auto value = numeric(after.substr(1), used)) {
          out += *value;
          at += 2 + used;
          continue;
        }
      } else if (const auto value = longest_name(after, used)) {
        out += *value;
        at += 1 + used;
        continue;
      }
    }
    out += text[at++];
  }
  return out;
}

std::string clean_prompt(std::string_view text) {
  // ftfy resolves entities first, and again as long as that changes something, where there is no tag about.
  std::string fixed(text), before;
  while (fixed != before) {
    before = fixed;
    fixed = compose(repair(fixed.find('<') == std::string::npos ? html_unescape(fixed) : fixed));
  }
  return lower(collapse_spaces(html_unescape(html_unescape(fixed))));
}

}  // namespace sfumato::text
