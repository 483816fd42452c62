#pragma once
// Benchmark results as Markdown, CSV or JSON, printed row by row.
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/bench/measure.h"

namespace sfumato {

enum class TableFormat { kMarkdown, kCsv, kJson };

/// On standard output. Rows have equal fields; Markdown shows the cells, and what it has no room for in the title.
class Table {
 public:
  Table(TableFormat format, std::string title, std::vector<std::string> columns)
      : format_(format), title_(std::move(title)), columns_(std::move(columns)) {}
  void add(const nlohmann::ordered_json& fields, const std::vector<std::string>& cells);
  void end();

 private:
  TableFormat format_;
  std::string title_;
  std::vector<std::string> columns_;
  bool is_first_ = true;
};

/// -o, --output.
void add_format_option(CLI::App& app, TableFormat& format);

double median(std::vector<double> values);

/// The table of components and its rows.
Table bench_table(TableFormat format);
void add_row(Table& table, const BenchCase& bench_case, const BenchResult& result);

}  // namespace sfumato
