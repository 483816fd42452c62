#include "image/parameters.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace sfumato {
namespace {

constexpr std::string_view kNegative = "Negative prompt: ", kFirstField = "Steps: ";

bool needs_quotes(const std::string& value) {
  return value.find_first_of(",:\"\n\r") != std::string::npos || trim(value) != value || value.empty();
}

std::string quoted(const std::string& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Splits "A: 1, B: \"x, y\"" into fields.
std::vector<std::pair<std::string, std::string>> parse_fields(std::string_view line) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!line.empty()) {
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) break;
    const std::string key(trim(line.substr(0, colon)));
    line.remove_prefix(colon + 2);
    size_t end = 0;
    if (line.starts_with('"')) {
      for (end = 1; end < line.size() && line[end] != '"'; ++end)
        if (line[end] == '\\') ++end;
      end = std::min(end + 1, line.size());
    }
    end = std::min(line.find(',', end), line.size());
    const std::string raw(trim(line.substr(0, end)));
    const nlohmann::json value =
        raw.starts_with('"') ? nlohmann::json::parse(raw, nullptr, false) : nlohmann::json(raw);
    fields.emplace_back(key, value.is_string() ? value.get<std::string>() : raw);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

/// What a negative prompt written as it is would be mistaken about.
bool is_ambiguous(const std::string& negative) {
  if (("\n" + negative).find("\n" + std::string(kNegative)) != std::string::npos) return true;
  const nlohmann::json value = nlohmann::json::parse(negative, nullptr, false);
  return value.is_string() && is_ambiguous(value.get<std::string>());
}

}  // namespace

const std::string* GenerationInfo::find(std::string_view key) const {
  for (const auto& [name, value] : fields)
    if (name == key) return &value;
  return nullptr;
}

std::string format_parameters(const GenerationInfo& info) {
  std::vector<std::string> fields;
  for (const auto& [key, value] : info.fields)
    fields.push_back(key + ": " + (needs_quotes(value) ? quoted(value) : value));
  std::string text = info.prompt + "\n";
  // An empty negative line keeps a prompt whose own last line looks like one apart.
  if (!info.negative.empty() || is_ambiguous(info.prompt))
    text += std::string(kNegative) + (is_ambiguous(info.negative) ? quoted(info.negative) : info.negative) + "\n";
  return text + join(fields, ", ");
}

Result<GenerationInfo> parse_parameters(std::string_view text) {
  GenerationInfo info;
  // The fields are the last line; before it everything from the last "Negative prompt: " line on is the negative.
  const size_t last_line = text.rfind('\n') == std::string_view::npos ? 0 : text.rfind('\n') + 1;
  if (!text.substr(last_line).starts_with(kFirstField))
    return input_error(
        "[image.parameters] expected a last line that starts with \"Steps: \"; is this a generated picture?");
  info.fields = parse_fields(text.substr(last_line));
  std::string_view prompts = text.substr(0, last_line == 0 ? 0 : last_line - 1);
  const std::string mark = "\n" + std::string(kNegative);
  if (const size_t at = prompts.rfind(mark); at != std::string_view::npos) {
    info.negative = prompts.substr(at + mark.size());
    prompts = prompts.substr(0, at);
  } else if (prompts.starts_with(kNegative)) {  // other programs leave an empty prompt's line out
    info.negative = prompts.substr(kNegative.size());
    prompts = {};
  }
  info.prompt = prompts;
  const nlohmann::json value = nlohmann::json::parse(info.negative, nullptr, false);
  if (value.is_string() && is_ambiguous(value.get<std::string>())) info.negative = value.get<std::string>();
  return info;
}

}  // namespace sfumato
