// Rows of a result file on stdout: as a table for people, as CSV, JSON or YAML for scripts.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "results_schema/reader.h"

namespace shardscape::cli {

enum class RowFormat : std::uint8_t { table, csv, json, yaml };

using RowGroups = std::vector<std::vector<std::size_t>>;

/// What is known of rows beside what the file holds.
struct FurtherColumn {
  results::ColumnInfo info;
  std::string heading;         ///< of the table
  std::string behind;          ///< the column of the file that it follows there; for scripts it comes last
  std::vector<double> values;  ///< by row; NaN: not known
};

/// Chosen rows with all their columns: `values[column][i]` belongs to `rows[i]`.
struct ChosenRows {
  std::vector<std::uint64_t> rows;
  std::vector<std::vector<double>> values;
  std::vector<FurtherColumn> further = {};
};
ChosenRows read_rows(const results::ResultReader& reader, std::vector<std::uint64_t> rows);

/// The first rows of the groups, in their order.
ChosenRows in_order(const ChosenRows& chosen, const RowGroups& groups);

struct TableOptions {
  std::vector<std::string> first_columns;  ///< outputs to show first: what the rows are ranked by
  bool breakdown = false;                  ///< shares of the step, class by class
  bool verdicts = false;                   ///< status and reason
  /// Rows (as numbers of ChosenRows::rows) that are shown as one, in the order in which they are shown; of each the first
  /// is shown, with all values of plan axes. Empty: each row by itself, in their order.
  RowGroups groups = {};
};

/// Rows that tie: all that the file holds of them is equal, to the bit, but for one plan axis, or for several of which
/// every combination ties. By their first row. Nothing else tells such plans apart.
RowGroups tied_rows(const results::ResultReader& reader, const ChosenRows& chosen);

/// Inputs that vary in the file and the main outputs, in human units.
void print_table(std::ostream& out, const results::ResultReader& reader, const ChosenRows& chosen,
                 const TableOptions& options);

/// Every column under its full name, in SI units, codes by their names, what was not computed empty or null.
void print_machine(std::ostream& out, const results::ResultReader& reader, const ChosenRows& chosen,
                   RowFormat format);

/// "tp" for tensor_parallel, "step_time" for step_time_s.
std::string short_heading(const results::ColumnInfo& column);
inline constexpr std::size_t kLongestNumber = 32;
/// The shortest text that reads back as the stored value, which is finite; returns its end.
char* write_exact(results::ColumnType type, double value, std::span<char, kLongestNumber> text);
/// The name of a code or the shortest text that reads back as the stored value; empty where there is none.
std::string plain_value(const results::ColumnInfo& column, double value);

}  // namespace shardscape::cli

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(cli::RowFormat, "table", "csv", "json", "yaml");
}  // namespace shardscape
