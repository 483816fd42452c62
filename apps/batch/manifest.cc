#include "apps/batch/manifest.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "pipeline/options_json.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

bool is_option(std::string_view field, std::string_view name) {
  const Option* option = find_option(field);
  return option && option->names[0] == name;
}

Error at_line(size_t number, const Error& error) {
  return {error.kind, str("[batch.manifest] line ", number, ": ", error.message)};
}

/// What makes two lines the same to Pipeline::check.
std::string settings_of(std::string_view line) {
  Json settings = Json::parse(line);
  for (const char* field : {"prompt", "id", "seed"}) settings.erase(field);
  return settings.dump();
}

}  // namespace

Result<Manifest> Manifest::open(const std::filesystem::path& path, const RunOptions& defaults, const Check& check) {
  Manifest manifest;
  manifest.file_ = TRY(MappedFile::open(path));
  manifest.defaults_ = defaults;
  const std::string_view text = manifest.file_->text();
  std::set<std::string> checked;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trim(text.substr(begin, end - begin));
    ++number;
    if (!line.empty()) {
      const Line entry{number, static_cast<size_t>(line.data() - text.data()), line.size(), manifest.pictures_};
      const Result<size_t> pictures = manifest.check_line(entry, check, checked);
      if (!pictures) return at_line(number, pictures.error());
      manifest.lines_.push_back(entry);
      manifest.pictures_ += *pictures;
    }
    begin = end + 1;
  }
  if (manifest.lines_.empty()) return input_error(str("[batch.manifest] no line in \"", path.string(), "\""));
  return manifest;
}

Result<size_t> Manifest::check_line(const Line& line, const Check& check, std::set<std::string>& checked) const {
  RunOptions run = TRY(parse(text_of(line), /*with_files=*/false));
  const auto count = static_cast<size_t>(run.request.images);
  if (const uint64_t last = seed_of(run, line.first + count - 1, line); last > UINT32_MAX)
    return usage_error(str("expected seeds up to 4294967295, got ", last, " for the line's last picture"));
  run.request.images = 1;
  if (checked.insert(settings_of(text_of(line))).second) TRY(check(run.request));
  return count;
}

Result<RunOptions> Manifest::parse(std::string_view line, bool with_files) const {
  const Json object = TRY(parse_json(line));
  if (!object.is_object()) return input_error("expected an object, as in {\"prompt\": \"a red apple\"}");
  RunOptions run = defaults_;
  run.is_seed_given = false;
  for (const auto& [field, value] : object.items()) {
    if (field == "id") {
      if (!value.is_string() && !value.is_number_integer()) return input_error("id expected a text or a whole number");
      continue;
    }
    const Option* option = find_option(field);
    if (!option || !concerns_a_picture(*option))
      return usage_error(str("the field \"", printable(field), "\" is not one of a picture's; see sfumato --help"));
    if (option->value == "FILE")
      TRY(set_file(run, *option, field, value, with_files));
    else
      TRY(set_option(run, *option, field, value));
  }
  if (run.request.prompts.size() != 1)
    return usage_error(str("expected one \"prompt\", got ", run.request.prompts.size()));
  return run;
}

Result<void> Manifest::set_file(RunOptions& run, const Option& option, const std::string& field, const Json& value,
                                bool with_files) const {
  if (!value.is_string()) return usage_error(str(field, " expected a file's name, got ", printable(value.dump())));
  const std::filesystem::path path = file_->path().parent_path() / value.get<std::string>();
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed))
    return input_error(str("there is no file \"", printable(path.string()), "\""));
  return with_files ? set_option(run, option, field, path.string()) : Result<void>();
}

uint64_t Manifest::seed_of(const RunOptions& run, size_t index, const Line& line) const {
  return run.is_seed_given ? uint64_t{run.request.seed} + (index - line.first)
                           : uint64_t{defaults_.request.seed} + index;
}

const Manifest::Line& Manifest::line_of(size_t index) const {
  CHECK(index < pictures_);
  return *std::prev(std::upper_bound(lines_.begin(), lines_.end(), index,
                                     [](size_t i, const Line& candidate) { return i < candidate.first; }));
}

Result<Request> Manifest::request(size_t index) const {
  const Line& line = line_of(index);
  Result<RunOptions> run = parse(text_of(line), /*with_files=*/true);
  if (!run) return at_line(line.number, run.error());
  run->request.seed = static_cast<uint32_t>(seed_of(*run, index, line));
  run->request.images = 1;
  return std::move(run->request);
}

OrderedJson Manifest::record(size_t index) const {
  const Line& line = line_of(index);
  const RunOptions run = parse(text_of(line), /*with_files=*/false).value();
  const OrderedJson fields = OrderedJson::parse(text_of(line));
  OrderedJson record;
  for (const auto& [field, value] : fields.items())
    if (!is_option(field, "--batch-count") && !is_option(field, "--seed")) record[field] = value;
  record["seed"] = seed_of(run, index, line);
  return record;
}

}  // namespace sfumato
