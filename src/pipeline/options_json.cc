#include "pipeline/options_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/strings.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;

bool is_number(const Option& option) {
  return option.value == "N" || option.value == "X";
}

const char* expected_type(const Option& option) {
  if (option.value.empty()) return "true or false";
  return is_number(option) ? "a number" : "a text";
}

bool fits(const Option& option, const Json& value) {
  if (option.value.empty()) return value.is_boolean();
  return is_number(option) ? value.is_number() : value.is_string();
}

/// As a person would type it.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value.get<double>()).ptr};  // 20.0 is "20"
  }
  return value.dump();
}

/// Refuses what nlohmann-json takes silently: a field given twice, of which it keeps the last.
class TwiceFinder {
 public:
  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
  }
  std::string twice;

 private:
  std::vector<std::set<std::string>> open_;
};

constexpr size_t kMaxDepth = 32;

/// The deepest nesting outside of texts; the parser recurses when it frees a value.
size_t depth_of(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\') ++i;
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

const Option* find_option(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  for (const Option& option : all_options())
    for (std::string known : option.names) {
      std::replace(known.begin(), known.end(), '_', '-');
      if (known == name) return &option;
    }
  return nullptr;
}

Result<void> set_option(RunOptions& run, const Option& option, std::string_view field, const Json& value) {
  if (value.is_null()) return {};
  if (option.repeats && value.is_array()) {
    for (const Json& one : value) TRY(set_option(run, option, field, one));
    return {};
  }
  if (!fits(option, value))
    return usage_error(str("[options] ", printable(field), " expected ", expected_type(option), ", got ",
                           printable(value.dump(-1, ' ', false, Json::error_handler_t::replace))));
  if (option.value.empty() && !value.get<bool>()) return {};
  return option.set(run, text_of(value));
}

Result<void> set_options(RunOptions& run, const Json& fields) {
  for (const auto& [field, value] : fields.items()) {
    const Option* option = find_option(field);
    if (!option) return usage_error(str("[options] the field \"", printable(field), "\" is not known"));
    TRY(set_option(run, *option, field, value));
  }
  return {};
}

Result<Json> parse_json(std::string_view text) try {
  if (depth_of(text) > kMaxDepth) return input_error(str("[json] expected at most ", kMaxDepth, " levels"));
  TwiceFinder finder;
  Json parsed = Json::parse(text, std::ref(finder));
  if (!finder.twice.empty())
    return input_error(str("[json] the field \"", printable(finder.twice), "\" is there twice"));
  return parsed;
} catch (const Json::exception& error) {
  return input_error(str("[json] ", printable(error.what())));
}

}  // namespace sfumato
