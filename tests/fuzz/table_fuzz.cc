// Do tables of measurements survive any bytes? Rows have a cell for each column, and cells come back from
// the text they would be written as.
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/safe_text.h"
#include "sweep/validate/measured_table.h"
#include "sweep/validate/row_reader.h"

using namespace shardscape;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const validate::Table table = validate::parse_csv(text, "t.csv");
  const validate::ColumnIndex index(table);
  std::vector<validate::TableProblem> problems;
  for (const validate::TableRow& row : table.rows) {
    SHARDSCAPE_CHECK(row.cells.size() == table.columns.size() && row.line >= 1, row.line);
    validate::RowReader reader(table, index, row, problems);
    std::string line;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      if (const auto number = reader.positive(table.columns[c])) SHARDSCAPE_CHECK(*number > 0, *number);
      reader.integer(table.columns[c]);
      reader.flag(table.columns[c]);
      line += (c == 0 ? "" : ",") + csv_cell(row.cells[c]);
    }
    std::string header;
    for (std::size_t c = 0; c < row.cells.size(); ++c) header += (c == 0 ? "c" : ",c") + std::to_string(c);
    const validate::Table again = validate::parse_csv(header + "\n" + line + "\n", "again.csv");
    if (again.rows.size() != 1) continue;  // a single blank cell is a blank line
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      // Blanks around an unquoted cell are trimmed, so a quoted one that needs no quotes may lose its own.
      const std::string& cell = row.cells[c];
      const bool padded =
          !cell.empty() && (cell.find_first_of(" \t") == 0 || cell.find_last_of(" \t") + 1 == cell.size());
      // What a spreadsheet would take for a formula comes back behind an apostrophe.
      const std::string& back = again.rows[0].cells[c];
      SHARDSCAPE_CHECK(padded || back == cell || back == "'" + cell, cell);
    }
  }
  for (const validate::TableProblem& problem : problems)
    SHARDSCAPE_CHECK(to_string(problem).starts_with("t.csv:"), problem.message);
  return 0;
}
