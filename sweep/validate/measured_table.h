// A measurement table as text: named columns, and rows with their line numbers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace shardscape::validate {

/// A problem in a table. `line` counts from 1, 0 stands for the whole file; `column` is empty where no column is at
/// fault.
struct TableProblem {
  std::string file;
  int line = 0;
  std::string column;
  std::string message;    ///< what is wrong, and what would be right
  bool rejected = false;  ///< the row is valid but asks for an impossible plan
};

/// The problem as "file:line: column: message".
std::string to_string(const TableProblem& problem);

struct TableRow {
  int line = 0;
  std::vector<std::string> cells;  ///< one per column; empty: unknown
};

struct Table {
  std::string file;  ///< name of the file as the user gave it
  std::vector<std::string> columns;
  std::vector<TableRow> rows;
  std::vector<TableProblem> problems;  ///< problems of reading; their rows are left out

  /// The number of the column of that name; nothing where there is none.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

/// Parses comma-separated text after RFC 4180: the first line names the columns, cells may be quoted, a doubled quote
/// within a quoted cell stands for one, and quoted cells may span lines. Skips blank lines, a byte-order mark and
/// carriage returns; trims spaces around cells outside quotes. Problems are rows with more or fewer cells than the
/// header, text that is not UTF-8, a column named twice and a quote that never ends. Never throws.
Table parse_csv(std::string_view text, std::string file);

/// The text of a table's file, or the reason why it cannot be read.
tl::expected<std::string, std::string> read_table(const std::filesystem::path& file);

}  // namespace shardscape::validate
