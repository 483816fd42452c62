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
  if (!info.negative.empty()) text += std::string(kNegative) + info.negative + "\n";
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
  size_t negative = prompts.rfind(mark);
  if (prompts.starts_with(kNegative)) {
    info.negative = prompts.substr(kNegative.size());
    prompts = {};
  } else if (negative != std::string_view::npos) {
    info.negative = prompts.substr(negative + mark.size());
    prompts = prompts.substr(0, negative);
  }
  info.prompt = prompts;
  return info;
}

}  // namespace sfumato
