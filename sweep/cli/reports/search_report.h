// Output of a search while it runs and when it is done.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "sweep/cli/terminal/progress.h"
#include "sweep/search/best_first.h"

namespace shardscape::cli {

/// Prints a line from time to time: visited, cut off, the bound of what is left, the best.
class SearchReporter {
 public:
  /// `job` must outlive the reporter; `objective` is one of its columns.
  SearchReporter(const sweep::SweepJob& job, std::string objective, ProgressMode mode);

  void update(const sweep::SearchProgress& progress);
  /// Moves the terminal to a fresh line.
  void close() { line_.close(); }

 private:
  [[nodiscard]] std::string text(const sweep::SearchProgress& progress) const;
  [[nodiscard]] nlohmann::ordered_json json(const sweep::SearchProgress& progress) const;

  const sweep::SweepJob& job_;
  std::string objective_;
  ProgressLine line_;
};

/// Prints what became of the points, and how good the answer is. `worst`: the objective of the answer's last point;
/// nothing where there is no answer, or where it is a front.
void print_search(std::ostream& out, const sweep::SweepJob& job, const sweep::SearchOutcome& outcome,
                  const std::string& objective, std::optional<double> worst, double cpu_seconds);

/// What a search for the plan that executes best has found, in one line.
std::string executed_text(const sweep::SweepJob& job, const sweep::SearchGoal& goal,
                          const sweep::SearchOutcome& found, double cpu_seconds);

}  // namespace shardscape::cli
