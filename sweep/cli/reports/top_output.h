// Prints rows of a result file on stdout: as a table for people, as CSV, JSON or YAML for scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "results_schema/reading/reader.h"

namespace shardscape::cli {

enum class RowFormat : std::uint8_t { table, csv, json, yaml };

using RowGroups = std::vector<std::vector<std::size_t>>;

/// Values of rows that the file does not hold.
struct FurtherColumn {
  results::ColumnInfo info;
  std::string heading;  ///< heading in the table
  /// Name of the file's column that it follows in the table; for scripts it comes last.
  std::string behind;
  std::vector<double> values;  ///< by row; NaN: not known
};

/// Chosen rows with all of their columns: `values[column][i]` belongs to `rows[i]`.
struct ChosenRows {
  std::vector<std::uint64_t> rows;
  std::vector<std::vector<double>> values;
  std::vector<FurtherColumn> further = {};
};
ChosenRows read_rows(const results::ResultReader& reader, std::vector<std::uint64_t> rows);

/// The first rows of the groups, in the order of the groups.
ChosenRows in_order(const ChosenRows& chosen, const RowGroups& groups);

struct TableOptions {
  std::vector<std::string> first_columns;  ///< outputs that come first: those that rows are ranked by
  std::vector<std::string> only = {};      ///< the columns to show beside point_id; empty: those below
  bool breakdown = false;                  ///< show the step's shares by class of time
  bool verdicts = false;                   ///< show status and reason
  /// Groups of rows (indices in ChosenRows::rows) that are shown as one row, in the order in which they are shown; the
  /// first row of each is shown, with all the group's values of plan axes. Empty: each row is shown, in order.
  RowGroups groups = {};
  std::vector<std::string> remarks = {};  ///< on the rows (top_table.h), below them
};

/// Groups of rows that tie, by their first row: all that the file holds of them is equal, to the bit, except one plan
/// axis, or several of which every combination ties. Nothing else distinguishes such plans.
RowGroups tied_rows(const results::ResultReader& reader, const ChosenRows& chosen);

/// Prints inputs that vary in the file and the main outputs, in human units.
void print_table(std::ostream& out, const results::ResultReader& reader, const ChosenRows& chosen,
                 const TableOptions& options);

/// Prints every column, or `only` these, under its full name, in SI units, codes by name; values not computed are empty
/// or null.
void print_machine(std::ostream& out, const results::ResultReader& reader, const ChosenRows& chosen,
                   RowFormat format, const std::vector<std::string>& only = {});

/// A short heading: "tp" for tensor_parallel, "step_time" for step_time_s.
std::string short_heading(const results::ColumnInfo& column);
/// A value for people: the name of a code, a percentage, or a number with its unit.
std::string shown_value(const results::ColumnInfo& column, double value);
inline constexpr std::size_t kLongestNumber = 32;
/// Writes the shortest text that reads back as the stored value, which must be finite; returns its end.
char* write_exact(results::ColumnType type, double value, std::span<char, kLongestNumber> text);
/// The name of a code, or the shortest text that reads back as the stored value; empty where there is none.
std::string plain_value(const results::ColumnInfo& column, double value);

}  // namespace shardscape::cli
