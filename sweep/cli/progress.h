// Shows the progress of a sweep, to people and to scripts.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/base/enum_names.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

/// line: a single line on stderr, rewritten in place. plain: a line on stderr from time to time. json: one object per
/// line on stdout.
enum class ProgressMode : std::uint8_t { automatic, plain, json, none, line };

/// Called by the sweep's writer after each block; prints at most a few times per second.
class ProgressReporter {
 public:
  /// `job` must outlive the reporter. `automatic` is a rewritten line on a terminal, and plain lines elsewhere.
  ProgressReporter(const sweep::SweepJob& job, ProgressMode mode);
  ~ProgressReporter();
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

  void update(const sweep::SweepProgress& progress);
  /// Moves the terminal to a fresh line; nothing is printed afterwards.
  void close();

  [[nodiscard]] double elapsed_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string describe(const sweep::SweepProgress& progress) const;
  [[nodiscard]] std::string json(const sweep::SweepProgress& progress) const;
  [[nodiscard]] std::string best(const sweep::BestPoint& point) const;
  void rewrite(const std::string& text);

  const sweep::SweepJob* job_;
  ProgressMode mode_;
  Clock::time_point start_, next_;
  std::size_t width_ = 0;  ///< characters of the line on the terminal
};

}  // namespace shardscape::cli

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(cli::ProgressMode, "auto", "plain", "json", "none");
}  // namespace shardscape
