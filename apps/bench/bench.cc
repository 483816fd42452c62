#include "apps/bench/bench.h"

#include <map>

#include "apps/bench/measure.h"
#include "apps/bench/scaling.h"
#include "apps/bench/table.h"
#include "base/strings.h"
#include "pipeline/options_json.h"
#include "pipeline/parse.h"

namespace sfumato {
namespace {

constexpr const char* kDescription =
    "How long a model's parts take here. Lists with commas: every combination is run.\n"
    "`sfumato bench scaling` measures one, two, four devices of a PJRT plugin.\n"
    "  sfumato bench --synthetic-weights sd15 --component unet,vae-decode --size 512x512 --batch 2";

constexpr Component kComponents[] = {Component::kText, Component::kUnet, Component::kVaeDecode, Component::kVaeEncode,
                                     Component::kPipeline};

struct BenchOptions {
  std::vector<BenchCase> cases;
  int warm_up = 1, repeats = 3;
  TableFormat format = TableFormat::kMarkdown;
};

/// Each case of `cases` once for each of `values`, put in by the option of that name.
Result<void> multiply(std::vector<BenchCase>& cases, const char* option, const std::vector<std::string>& values) {
  if (values.empty()) return {};
  std::vector<BenchCase> product;
  for (const BenchCase& one : cases)
    for (const std::string& value : values) {
      product.push_back(one);
      TRY(find_option(option)->set(product.back().run, value));
    }
  cases = std::move(product);
  return {};
}

Result<std::vector<BenchCase>> cases_of(const RunOptions& run, const std::vector<std::string>& components,
                                        const std::map<const char*, std::vector<std::string>>& lists,
                                        const std::vector<std::string>& batches) {
  std::vector<BenchCase> cases;
  for (const std::string& name : components) {
    const auto* found = std::find_if(std::begin(kComponents), std::end(kComponents),
                                     [&](Component c) { return component_name(c) == name; });
    if (found == std::end(kComponents))
      return usage_error(str("[bench] --component expected text, unet, vae-decode, vae-encode or pipeline, got \"",
                             printable(name), "\""));
    for (const std::string& text : batches) {
      const int batch = TRY(parse_number<int>("--batch", text, 1, 64));
      cases.push_back({*found, run, batch});
    }
  }
  for (const auto& [option, values] : lists) TRY(multiply(cases, option, values));
  return cases;
}

/// Nothing: there is nothing to do (--help).
Result<std::optional<BenchOptions>> parse(const Words& words) {
  Command command("sfumato bench", kDescription);
  std::vector<std::string> components = {"text", "unet", "vae-decode"}, batches = {"1"};
  std::map<const char*, std::vector<std::string>> lists;
  BenchOptions options;
  const auto list = [&](const char* names, std::vector<std::string>& values, const char* help) {
    command.app.add_option(names, values, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--component", components, "text, unet, vae-decode, vae-encode, pipeline; default: the first three");
  list("--size", lists["size"], "WxH; default: the model's");
  list("--batch", batches, "samples at once; default 1. With guidance a U-Net sees two a picture");
  list("-t,--threads", lists["threads"], "default: the physical cores this process may use");
  list("--precision", lists["precision"], "auto, fp32 or bf16");
  command.app.add_option("-r,--repeats", options.repeats, "timed runs; default 3")->check(CLI::Range(1, 1000));
  command.app.add_option("--warm-up", options.warm_up, "runs before those; default 1")->check(CLI::Range(0, 100));
  add_format_option(command.app, options.format);
  command.take({"--model", "--synthetic-weights", "--steps", "--cfg-scale", "--sampler", "--scheduler"});
  if (!TRY(command.parse(words))) return std::optional<BenchOptions>();
  options.cases = TRY(cases_of(command.run, components, lists, batches));
  return std::optional<BenchOptions>(std::move(options));
}

}  // namespace

Result<void> bench(const Words& words) {
  if (!words.empty() && words[0] == "scaling") return bench_scaling({words.begin() + 1, words.end()});
  const std::optional<BenchOptions> options = TRY(parse(words));
  if (!options) return {};
  Table table = bench_table(options->format);
  for (const BenchCase& one : options->cases)
    add_row(table, one, TRY(measure(one, options->warm_up, options->repeats)));
  table.end();
  return {};
}

}  // namespace sfumato
