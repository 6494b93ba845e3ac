#include "sweep/cli/reports/selection_text.h"

#include <iostream>

#include "engine/base/suggest.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using results::SelectionKind;

/// The part of the rows as text: "shard 3 of 16", "shards 1 to 2 of 3", "rows 64 to 127".
std::string part_text(const results::BlockLayout& layout, const results::ShardRange& shards) {
  if (shards.count == 0) {
    const std::uint64_t first = layout.first_row(layout.blocks.first);
    return "rows " + format_count(first) + " to " + format_count(first + layout.rows() - 1);
  }
  const std::string which = shards.first == shards.last
                                ? "shard " + format_count(shards.first)
                                : "shards " + format_count(shards.first) + " to " + format_count(shards.last);
  return which + " of " + format_count(shards.count);
}

/// The choice of points as text. `rows`: which of the points become rows; empty where all do.
std::string describe_choice(const results::BlockLayout& layout, const results::ShardRange& shards,
                            const std::string& rows) {
  const std::string count = format_count(layout.total_points);
  std::string chosen;
  if (layout.selection.kind == SelectionKind::first) chosen = "the first " + count;
  if (layout.selection.kind == SelectionKind::sample) chosen = "a sample of " + count;
  if (layout.selection.kind == SelectionKind::search) chosen = count + " that a search visited";
  if (!layout.is_unsharded()) {
    chosen = part_text(layout, shards) + (chosen.empty() ? "" : " of " + chosen);
  }
  if (!rows.empty()) chosen = rows + (chosen.empty() ? "" : " of " + chosen);
  if (chosen.empty()) return "";
  return "of " + format_count(layout.selection.study_points) + " in the study, " + chosen;
}

}  // namespace

std::string of_the_study(const results::BlockLayout& layout, const results::ShardRange& shards) {
  return describe_choice(layout, shards, "");
}

std::string of_the_study(const results::ResultReader& reader) {
  using enum results::RowChoice;
  const results::StoredRows& stored = reader.stored_rows();
  const bool chosen = reader.complete() || stored.choice == all || stored.choice == feasible;
  return describe_choice(reader.layout(), reader.shards(),
                         (chosen ? "" : "candidates for ") + stored_rows_text(stored, reader.objectives()));
}

std::string stored_rows_text(const results::StoredRows& rows, const std::vector<std::string>& objectives) {
  switch (rows.choice) {
    case results::RowChoice::feasible:
      return "the feasible ones";
    case results::RowChoice::pareto:
      return "the Pareto front over " + join_names(rows.front);
    case results::RowChoice::top:
      return "the " + format_count(rows.count) + " best by " + objectives.front();
    case results::RowChoice::all:
      break;
  }
  return "";
}

std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

void note_selection(const results::ResultReader& reader) {
  const std::string text = of_the_study(reader);
  if (!text.empty()) {
    std::cerr << "note: " << counted(reader.row_count(), "point") << ", " << text << "\n";
  }
}

}  // namespace shardscape::cli
