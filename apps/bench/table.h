#pragma once
// Benchmark results as Markdown, CSV or JSON.
#include <string>

#include "apps/bench/measure.h"

namespace sfumato {

enum class TableFormat { kMarkdown, kCsv, kJson };

/// What stands before the rows: Markdown names the machine, CSV the columns.
std::string table_head(TableFormat format);
/// One row, whole lines. JSON rows are the elements of an array that head and foot open and close.
std::string table_row(TableFormat format, const BenchCase& bench_case, const BenchResult& result, bool is_first);
std::string table_foot(TableFormat format);

}  // namespace sfumato
