#pragma once
// What happens to a prompt before it is split: CLIP's basic_clean and whitespace_clean, then lower case.
#include <string>
#include <string_view>

namespace sfumato::text {

/// In this order: HTML entities are resolved while that changes something and there is no '<'; invalid UTF-8 becomes
/// U+FFFD; control characters and byte order marks go; curly quotes become straight, Latin ligatures letters,
/// full-width forms ASCII (ftfy's defaults, without its guessing of wrong encodings); NFC; HTML entities resolved
/// twice; white space collapsed to single spaces and stripped; lower case as Python's str.lower().
std::string clean_prompt(std::string_view text);

/// Python's html.unescape: named (with and without ';'), decimal and hexadecimal references.
std::string html_unescape(std::string_view text);

}  // namespace sfumato::text
