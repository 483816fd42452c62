#include "apps/info/info.h"

#include <algorithm>
#include <iostream>

#include "apps/info/subjects.h"
#include "base/strings.h"
#include "pipeline/parse.h"

namespace sfumato {
namespace {

constexpr const char* kDescription =
    "Looks inside, so that results can be compared with another program's.\n"
    "  sfumato info                          this machine, and what Sfumato makes of it\n"
    "  sfumato info PICTURE                  the parameters it was generated with\n"
    "  sfumato info MODEL                    family, components, element types, sizes\n"
    "  sfumato info tokens TEXT [-m MODEL]   token ids with begin and end, one line a text encoder\n"
    "  sfumato info schedule [--steps N]     one line a step: timestep, sigma\n"
    "  sfumato info noise [-s N --shape 4x64x64]  one value a line\n"
    "Without a model: Stable Diffusion 1.5's settings.";

void print(const Report& report, bool as_json) {
  using Json = nlohmann::ordered_json;
  if (as_json)
    std::cout << report.json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    std::cout << report.text;
  for (const std::string& note : report.notes) std::cerr << "note: " << note << "\n";
}

Result<Shape> parse_shape(const std::string& text) {
  constexpr int kMaxExtent = 1 << 20, kMaxRank = 8;
  constexpr int64_t kMaxElements = 1 << 26;
  std::vector<int64_t> dims;
  for (const std::string& part : split(text, 'x'))
    dims.push_back(TRY(parse_number<int>("--shape", part, 1, kMaxExtent)));
  int64_t elements = 1;
  for (size_t i = 0; i < dims.size() && elements <= kMaxElements; ++i) elements *= dims[i];
  if (elements > kMaxElements || dims.size() > kMaxRank)
    return usage_error(str("[info] --shape expected at most ", kMaxElements, " values, got \"", text, "\""));
  return Shape(std::move(dims));
}

Result<void> whole_or_part(const Words& words) {
  Command command("sfumato info", kDescription);
  std::string subject;
  command.app.add_option("subject", subject, "a picture or a model folder; absent: this machine");
  command.take({"--json"});
  if (!TRY(command.parse(words))) return {};
  std::error_code failed;
  const std::filesystem::path path(subject);
  const bool is_model = std::filesystem::is_directory(path, failed) || path.extension() == ".safetensors";
  print(TRY(subject.empty() ? machine_report()
            : is_model      ? model_report(path)
                            : picture_report(path)),
        command.run.json);
  return {};
}

Result<void> tokens(const Words& words) {
  Command command("sfumato info tokens", "Token ids of TEXT with begin and end, one line a text encoder.");
  std::string text;
  command.app.add_option("text", text, "a prompt")->required();
  command.take({"--model", "--json"});
  if (!TRY(command.parse(words))) return {};
  print(TRY(tokens_report(command.run.pipeline.model, text)), command.run.json);
  return {};
}

Result<void> schedule(const Words& words) {
  Command command("sfumato info schedule", "The noise levels a sampler visits, one line a step: timestep, sigma.");
  command.take({"--model", "--steps", "--sampler", "--scheduler", "--prediction", "--json"});
  if (!TRY(command.parse(words))) return {};
  print(TRY(schedule_report(command.run.pipeline.model, command.run.request)), command.run.json);
  return {};
}

Result<void> noise(const Words& words) {
  Command command("sfumato info noise", "The noise that a seed gives, one value a line, in PyTorch's order.");
  std::string shape = "4x64x64";
  command.app.add_option("--shape", shape, "extents; default: 4x64x64, a 512x512 picture's");
  command.take({"--seed", "--rng", "--json"});
  if (!TRY(command.parse(words))) return {};
  print(TRY(noise_report(command.run.request, TRY(parse_shape(shape)))), command.run.json);
  return {};
}

}  // namespace

Result<void> info(const Words& words) {
  const std::string first = words.empty() ? "" : words[0];
  const Words rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (first == "tokens") return tokens(rest);
  if (first == "schedule") return schedule(rest);
  if (first == "noise") return noise(rest);
  return whole_or_part(words);
}

}  // namespace sfumato
