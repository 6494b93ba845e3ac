// Writes the tables of SCHEMA.md: all columns of both phases, those of fault samples, and the codes.
#include "results_schema/schema_doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/rows/columns.h"

namespace shardscape::results {
namespace {

struct Described {
  ColumnInfo column;
  std::string phases;
};

/// The columns of both phases in file order, each once.
std::vector<Described> all_columns() {
  const ColumnTable training(Phase::training, {}, {.faults = true, .reliability = true, .limits = {""}});
  const ColumnTable inference(
      Phase::inference, {},
      {.faults = true, .reliability = true, .load = true, .promises = true, .limits = {""}});
  std::vector<Described> all;
  for (const ColumnInfo& column : training.columns()) {
    all.push_back({column, inference.find(column.name) != nullptr ? "both" : "training"});
  }
  for (const ColumnInfo& column : inference.columns()) {
    if (training.find(column.name) == nullptr) all.push_back({column, "inference"});
  }
  std::ranges::stable_sort(all, {}, [](const Described& d) { return d.column.group; });
  return all;
}

constexpr const char* kTitles[] = {"Identity and verdict",
                                   "Plan",
                                   "Workload",
                                   "Hardware",
                                   "Outputs",
                                   "Memory of the fullest device (adds up to memory_peak_bytes)",
                                   "Breakdown (adds up to step_time_s, or e2e_s for inference)",
                                   "Faults and goodput (only in studies with `faults`, `reliability`)"};
static_assert(std::size(kTitles) == enum_names<ColumnGroup>().size());

std::string row_of(const Described& d) {
  const ColumnInfo& c = d.column;
  const std::string better = c.better == Better::neither ? "" : std::string(name_of(c.better));
  return fmt::format("| `{}` | {} | {} | {} | {} | {}{} |\n", c.name, name_of(c.type), c.unit, d.phases,
                     better, c.long_name, c.meanings.empty() ? "" : " (code)");
}

std::string columns_text(std::span<const Described> columns) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == 0 || columns[i].column.group != columns[i - 1].column.group) {
      text += fmt::format(
          "\n### {}\n\n| column | type | unit | phase | better | meaning |\n|---|---|---|---|---|---|\n",
          kTitles[static_cast<std::size_t>(columns[i].column.group)]);
    }
    text += row_of(columns[i]);
  }
  return text;
}

std::string sample_columns_text() {
  std::string text;
  for (const ColumnInfo& c : fault_sample_columns()) {
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", c.name, name_of(c.type), c.unit, c.long_name,
                        c.meanings.empty() ? "" : " (code)");
  }
  return text;
}

std::string codes_of(const ColumnInfo& column) {
  std::string text = "- `" + column.name + "`:";
  for (std::size_t i = 0; i < column.meanings.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? " " : ", ", i, column.meanings[i]);
  }
  return text + "\n";
}

std::string codes_text(std::span<const Described> columns) {
  std::string text;
  for (const Described& described : columns) {
    if (!described.column.meanings.empty()) text += codes_of(described.column);
  }
  for (const ColumnInfo& column : fault_sample_columns()) {
    if (column.name == "kind") text += codes_of(column);
  }
  return text;
}

/// Puts `text` in place of what stands between `before` and `after`.
void replace_between(std::string& document, std::string_view before, std::string_view after,
                     const std::string& text) {
  const std::size_t found = document.find(before), begin = found + before.size();
  const std::size_t end = found == document.npos ? found : document.find(after, begin);
  if (end == document.npos) throw std::runtime_error(fmt::format("no '{}' before '{}'", before, after));
  document.replace(begin, end - begin, text);
}

}  // namespace

std::string with_tables(std::string document) {
  const std::vector<Described> columns = all_columns();
  replace_between(document, "\"shardscape-results\", ", " |", std::to_string(kSchemaVersion));
  replace_between(document, "`missed_by` says by how much.\n", "\nEach `hardware:` axis",
                  columns_text(columns));
  replace_between(document, "| column | type | unit | meaning |\n|---|---|---|---|\n", "\n## Codes",
                  sample_columns_text());
  constexpr std::string_view kCodes = "## Codes\n\n";
  document.resize(document.find(kCodes) + kCodes.size());
  return document + codes_text(columns);
}

}  // namespace shardscape::results
