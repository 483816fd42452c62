#include "models/config.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace sfumato::models {

using Json = nlohmann::json;

Result<ConfigReader> ConfigReader::parse(const std::string& component, const std::string& text) {
  ConfigReader reader;
  reader.component_ = component;
  reader.json_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!reader.json_.is_object())
    return input_error(str("[models.config] ", component, "/config.json: expected a JSON object"));
  return reader;
}

const Json* ConfigReader::find(const char* key) const {
  return has(key) ? &json_[key] : nullptr;
}

void ConfigReader::fault(const std::string& message) {
  if (fault_.empty()) fault_ = message;
}

Result<void> ConfigReader::finish() const {
  if (fault_.empty()) return {};
  return input_error(str("[models.config] ", component_, "/config.json: ", fault_));
}

int64_t ConfigReader::integer(const char* key, int64_t fallback, int64_t least, int64_t most) {
  const Json* value = find(key);
  if (!value) return fallback;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!(number >= static_cast<double>(least) && number <= static_cast<double>(most)) || number != std::floor(number)) {
    fault(str(key, " expected an integer from ", least, " to ", most, ", got ", value->dump()));
    return fallback;
  }
  return static_cast<int64_t>(number);
}

double ConfigReader::number(const char* key, double fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_number()) return fault(str(key, " expected a number, got ", value->dump())), fallback;
  return value->get<double>();
}

bool ConfigReader::boolean(const char* key, bool fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_boolean()) return fault(str(key, " expected true or false, got ", value->dump())), fallback;
  return value->get<bool>();
}

std::string ConfigReader::text(const char* key, const std::string& fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_string()) return fault(str(key, " expected text, got ", value->dump())), fallback;
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(const char* key, const std::vector<std::string>& fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), [](const Json& j) { return j.is_string(); }))
    return fault(str(key, " expected a list of texts, got ", value->dump())), fallback;
  return value->get<std::vector<std::string>>();
}

std::vector<int64_t> ConfigReader::integers(const char* key, const std::vector<int64_t>& fallback) {
  const Json* value = find(key);
  if (!value) return fallback;
  const auto is_size = [](const Json& j) { return j.is_number_unsigned() && j >= 1 && j <= 1 << 20; };
  if (!value->is_array() || value->empty() || value->size() > 16 || !std::all_of(value->begin(), value->end(), is_size))
    return fault(str(key, " expected a list of sizes, got ", value->dump().substr(0, 80))), fallback;
  return value->get<std::vector<int64_t>>();
}

std::vector<int64_t> ConfigReader::per_block(const char* key, int64_t fallback, size_t count) {
  const Json* value = find(key);
  if (!value || !value->is_array()) return std::vector<int64_t>(count, integer(key, fallback));
  const std::vector<int64_t> list = integers(key, {fallback});
  if (list.size() == count) return list;
  fault(str(key, " expected ", count, " entries, got ", list.size()));
  return std::vector<int64_t>(count, fallback);
}

std::vector<bool> ConfigReader::per_block_flags(const char* key, bool fallback, size_t count) {
  const Json* value = find(key);
  if (!value || !value->is_array()) return std::vector<bool>(count, boolean(key, fallback));
  std::vector<bool> list;
  for (const Json& j : *value) list.push_back(j.is_boolean() && j.get<bool>());
  if (list.size() == count) return list;
  fault(str(key, " expected ", count, " entries, got ", list.size()));
  return std::vector<bool>(count, fallback);
}

void ConfigReader::refuse(const char* key, const Json& neutral) {
  const Json* value = find(key);
  if (value && *value != neutral)
    fault(str(key, " = ", value->dump().substr(0, 80), " is not supported",
              neutral.is_null() ? "" : str("; expected ", neutral.dump())));
}

}  // namespace sfumato::models
