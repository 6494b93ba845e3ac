// The progress of a sweep in words and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sweep/cli/terminal/progress.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

/// A value of an objective with its unit.
std::string objective_text(const sweep::SweepJob& job, const std::string& objective, double value);

/// The best point so far: its id, its value of the objective, and its plan.
nlohmann::ordered_json best_json(const sweep::SweepJob& job, std::uint64_t point,
                                 const std::string& objective, double value);

/// Progress of a sweep, whose writer updates it after each block.
class ProgressReporter {
 public:
  /// `job` must outlive the reporter.
  ProgressReporter(const sweep::SweepJob& job, ProgressMode mode) : job_(job), line_(mode) {}

  void update(const sweep::SweepProgress& progress);
  void close() { line_.close(); }
  [[nodiscard]] double elapsed_seconds() const { return line_.elapsed_seconds(); }

 private:
  [[nodiscard]] std::string text(const sweep::SweepProgress& progress) const;
  [[nodiscard]] nlohmann::ordered_json json(const sweep::SweepProgress& progress) const;

  const sweep::SweepJob& job_;
  ProgressLine line_;
};

}  // namespace shardscape::cli
