// shardscape export: writes a table of a result file as CSV. Rows are read in ranges, and cells that repeat are made
// into text once.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iostream>
#include <limits>
#include <string_view>
#include <utility>

#include "engine/base/safe_text.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/reading/reader.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/terminal/usage.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::ResultReader;

constexpr const char* kExportFooter =
    R"(Examples:
  shardscape export out.h5 --csv points.csv
  shardscape export out.h5 --csv samples.csv --table fault_samples
  shardscape export out.h5 --csv points.csv --force          replace the file of an earlier run
  shardscape export out.h5 --csv - | head

Every column under its full name, in SI units, codes by their names; what was not computed is empty.
Where the file holds a part of its study only, a note on standard error says which.)";

struct ExportArguments {
  std::filesystem::path file;
  std::string csv;
  std::string table = "points";
  bool force = false;
};

// Rows of all columns that are handled at once, few enough to stay in a processor's cache.
constexpr std::uint64_t kRowsWritten = 4096;
constexpr std::size_t kBuffer = 1U << 20U;  // bytes that are written at once

/// The cells of one column as text. A repeated value is made into text once, as axes keep theirs over many rows.
class CellTexts {
 public:
  explicit CellTexts(const ColumnInfo& column) : type_(column.type) {
    for (const std::string& name : column.meanings) names_.push_back(csv_cell(name));
  }

  /// The text of a value, equal to csv_cell(plain_value()); valid until the next call.
  std::string_view of(double value) {
    if (std::bit_cast<std::uint64_t>(value) == last_) return text_;
    last_ = std::bit_cast<std::uint64_t>(value);
    text_ = make(value);
    return text_;
  }

 private:
  std::string_view make(double value) {
    if (value >= 0 && value < static_cast<double>(names_.size()))
      return names_[static_cast<std::size_t>(value)];
    if (!std::isfinite(value)) return {};
    return {number_.data(), write_exact(type_, value, number_)};
  }

  results::ColumnType type_;
  std::vector<std::string> names_;
  std::uint64_t last_ = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  std::string_view text_;  ///< the text of `last_`
  std::array<char, kLongestNumber> number_{};
};

void write_table(std::ostream& out, const results::TableReader& table) {
  const std::vector<ColumnInfo>& columns = table.columns();
  const std::uint64_t rows = table.row_count();
  const char* separator = "";
  for (const ColumnInfo& column : columns) out << std::exchange(separator, ",") << csv_cell(column.name);
  out << "\n";
  std::vector<CellTexts> cells(columns.begin(), columns.end());
  std::vector<std::vector<double>> values(columns.size());
  std::string text;
  text.reserve(kBuffer + kBuffer / 8);
  for (std::uint64_t begin = 0; begin < rows; begin += kRowsWritten) {
    const results::RowRange range{begin, std::min(rows, begin + kRowsWritten)};
    for (std::size_t c = 0; c < columns.size(); ++c) table.read_into(columns[c].name, range, values[c]);
    for (std::size_t i = 0; i < values.front().size(); ++i) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (c > 0) text += ',';
        text += cells[c].of(values[c][i]);
      }
      text += '\n';
      if (text.size() < kBuffer) continue;
      out.write(text.data(), static_cast<std::streamsize>(text.size()));
      text.clear();
    }
    if (!out) return;  // the reader of the pipe has gone, or the disk is full; the caller notices
  }
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

int run_export(const ExportArguments& arguments, const CommonOptions& /*common*/) {
  const ResultReader reader = open_results(arguments.file);
  const results::TableReader& table = arguments.table == "fault_samples" ? reader.samples() : reader;
  if (table.columns().empty()) {
    throw BadInput(arguments.file.string() +
                   ": holds no fault samples; sweep a study with a 'faults:' key\n");
  }
  note_selection(reader);
  if (arguments.csv == "-") {
    write_table(std::cout, table);
    return kDone;
  }
  const std::filesystem::path inputs[] = {arguments.file};
  results::OutputFile out(results::OutputPath(arguments.csv, arguments.force, inputs));
  write_table(out.stream(), table);
  out.commit();
  return kDone;
}

}  // namespace

void add_export_command(const Program& program) {
  const auto [command, arguments] =
      program.add("export", "A table of a result file as CSV", kExportFooter, run_export);
  add_results(*command, arguments->file);
  add_value(*command, "--csv", arguments->csv, "OUT.csv", "The file to write; - is standard output")
      ->required();
  add_value(*command, "--table", arguments->table, "TABLE", "points (default) or fault_samples")
      ->check(one_of({"points", "fault_samples"}));
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
