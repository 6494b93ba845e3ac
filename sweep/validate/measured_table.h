// A measurement table as text: named columns, rows that know their line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace shardscape::validate {

/// Something wrong in a table. `line` counts from 1, 0 stands for the file as a whole; `column` is empty
/// where no column is to blame.
struct TableProblem {
  std::string file;
  int line = 0;
  std::string column;
  std::string message;    ///< what is wrong, and what would be right
  bool rejected = false;  ///< the row is sound, but asks for a plan that cannot be
};

/// "file:line: column: message".
std::string to_string(const TableProblem& problem);

struct TableRow {
  int line = 0;
  std::vector<std::string> cells;  ///< one per column; empty: unknown
};

struct Table {
  std::string file;  ///< as the user knows it
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::vector<TableProblem> problems;  ///< of reading; the rows they concern are left out
};

/// Comma-separated text after RFC 4180: the first line names the columns, cells may be quoted, a doubled
/// quote stands for one, quoted cells may span lines. Blank lines, a byte-order mark and carriage returns are
/// passed over, spaces around cells trimmed (not inside quotes). A row with another number of cells than the
/// header, text that is not UTF-8, a column named twice and a quote that never ends are problems. Never
/// throws.
Table parse_csv(std::string_view text, std::string file);

/// The text of a table's file, or why it can't be read.
tl::expected<std::string, std::string> read_table(const std::filesystem::path& file);

}  // namespace shardscape::validate
