// The rows that `top` and the page begin with: rows that tie are one, and the first are executed as well; and what is
// to be known of them beside what their columns say.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sweep/cli/reports/confirm.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/top_rows.h"

namespace shardscape::cli {

/// The rows of the table as `count` asks for them, where rows that tie are one.
struct TopTable {
  TopRows found;
  ChosenRows chosen;
  RowGroups groups;
};

/// `count_points`: `count` is of points of the file, not of rows of the table.
TopTable table_of(const results::ResultReader& reader, TopQuestion question, bool count_points);

/// Executes rows, and gives their executed times and their order by these.
class Confirmation {
 public:
  Confirmation(const results::ResultReader& reader, const TopQuestion& question, const ConfirmWish& wish);

  /// Executes the first rows of the groups, adds the column to the rows, and sorts these groups by their executed
  /// times.
  void run(ChosenRows& chosen, RowGroups& groups);

  /// A line that says what was executed and how the order changed; empty where nothing was to be executed.
  [[nodiscard]] std::string text() const;
  /// The same without what differs from run to run, with the reason why nothing was executed.
  [[nodiscard]] std::string lasting_text() const;

 private:
  /// Sorts the executed rows among the places that they have; all others stay where they are.
  void rank(RowGroups& groups);
  [[nodiscard]] std::string text_of(const std::string& executed) const;

  const results::ResultReader& reader_;
  const TopQuestion& question_;
  ConfirmWish wish_;
  std::string time_;                  ///< the column whose executed value is shown
  std::vector<std::string> columns_;  ///< time_, and the column that ranks
  Executions done_;
  std::string order_;
};

struct RowRemarks {
  std::vector<std::string> lines;
  std::vector<FurtherColumn> columns;  ///< for scripts
};
/// Where less of the model's FLOPs are left with half of the attention, as a causal mask leaves it, reports tell what
/// MFU is by them: with long sequences it is else above what the device can do.
inline constexpr double kMostlyCausal = 0.9;

/// Of groups of rows in their order: which are within the expected error of the first, where they are ranked by what
/// that is the error of, and which fill a GPU's memory (tight_memory()). `only`: the shown columns; empty: those of a
/// table, which has all that the lines speak of.
RowRemarks remarks_on_rows(const results::ResultReader& reader, const TopQuestion& question,
                           const ChosenRows& chosen, const RowGroups& groups,
                           std::span<const std::string> only = {});

}  // namespace shardscape::cli
