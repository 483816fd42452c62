#include "apps/bench/table.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cpu.h"
#include "base/strings.h"
#include "commit.h"

namespace sfumato {
namespace {

using Json = nlohmann::ordered_json;

/// The columns in the order of the documented JSON.
Json fields(const BenchCase& c, const BenchResult& r) {
  const auto [least, most] = std::minmax_element(r.seconds.begin(), r.seconds.end());
  const double middle = median(r.seconds), speed = r.flops / middle;
  return {{"component", component_name(c.component)},
          {"model", r.model},
          {"size", str(r.size.width, "x", r.size.height)},
          {"batch", c.batch},
          {"threads", r.threads},
          {"precision", precision_name(r.precision)},
          {"isa", isa_name(active_isa())},
          {"backend", "cpu"},
          {"compile_seconds", r.compile_seconds},
          {"seconds_min", *least},
          {"seconds_median", middle},
          {"seconds_max", *most},
          {"gflops_effective", speed / 1e9},
          {"peak_fraction", speed / r.peak_flops},
          {"rss_peak_bytes", r.rss_peak_bytes},
          {"commit", SFUMATO_COMMIT},
          {"cpu", cpu_model_name()}};
}

std::string csv(const Json& object, bool keys) {
  std::vector<std::string> cells;
  for (const auto& [key, value] : object.items()) cells.push_back(keys ? key : value.dump());
  return join(cells, ",") + "\n";
}

std::string markdown(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void Table::add(const Json& fields, const std::vector<std::string>& cells) {
  const bool is_first = std::exchange(is_first_, false);
  switch (format_) {
    case TableFormat::kMarkdown:
      if (is_first)
        print(str(title_, "\n\n", markdown(columns_), markdown(std::vector<std::string>(columns_.size(), "---"))));
      return print(markdown(cells));
    case TableFormat::kCsv:
      return print(str(is_first ? csv(fields, true) : "", csv(fields, false)));
    case TableFormat::kJson:
      return print(str(is_first ? "[\n" : ",\n", fields.dump()));
  }
}

void Table::end() {
  if (format_ == TableFormat::kJson) print(is_first_ ? "[]\n" : "\n]\n");
}

void add_format_option(CLI::App& app, TableFormat& format) {
  const std::map<std::string, TableFormat> formats = {
      {"md", TableFormat::kMarkdown}, {"csv", TableFormat::kCsv}, {"json", TableFormat::kJson}};
  app.add_option("-o,--output", format, "md, csv or json, on standard output")
      ->transform(CLI::CheckedTransformer(formats));
}

Table bench_table(TableFormat format) {
  return Table(format, str(cpu_model_name(), ", ", isa_name(active_isa()), ", sfumato ", SFUMATO_COMMIT),
               {"component", "model", "size", "batch", "threads", "precision", "seconds (min, max)", "GFLOP/s",
                "of fp32 peak", "compile s", "peak MB"});
}

void add_row(Table& table, const BenchCase& c, const BenchResult& r) {
  const Json f = fields(c, r);
  table.add(
      f, {f["component"], f["model"], f["size"], std::to_string(c.batch), std::to_string(r.threads), f["precision"],
          str(fixed(f["seconds_median"], 3), " (", fixed(f["seconds_min"], 3), ", ", fixed(f["seconds_max"], 3), ")"),
          fixed(f["gflops_effective"], 0), fixed(f["peak_fraction"], 2), fixed(r.compile_seconds, 2),
          std::to_string(r.rss_peak_bytes >> 20)});
}

}  // namespace sfumato
