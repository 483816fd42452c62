#pragma once
// The option list by way of JSON: request bodies and manifest lines.
#include <nlohmann/json.hpp>
#include <string_view>

#include "pipeline/options.h"

namespace sfumato {

/// The option of a JSON field: any of its long names without the dashes, "_" for "-" or not: "cfg_scale",
/// "guidance-scale". Null: there is none.
const Option* find_option(std::string_view field);

/// Sets one option from a field's value, by the same rules as the command line: numbers for numeric options (20.0 is
/// the whole number 20), texts for the others, true or false for flags; null leaves the option alone. An option that
/// repeats takes an array too. Faults name the field.
Result<void> set_option(RunOptions& run, const Option& option, std::string_view field, const nlohmann::json& value);

/// All the fields of an object, each of which must be an option's: a field that is none is a usage error.
Result<void> set_options(RunOptions& run, const nlohmann::json& fields);

/// The JSON of a text; a text that is no JSON, or has the same field twice, is an input error that says where.
Result<nlohmann::json> parse_json(std::string_view text);

}  // namespace sfumato
