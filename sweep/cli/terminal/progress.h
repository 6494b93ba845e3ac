// Shows the progress of a sweep, to people and to scripts.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/enum_names.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

/// line: a single line on stderr, rewritten in place. plain: a line on stderr from time to time. json: one object per
/// line on stdout.
enum class ProgressMode : std::uint8_t { automatic, plain, json, none, line };

/// Prints progress at most a few times per second.
class ProgressLine {
 public:
  /// `automatic` is a rewritten line on a terminal, and plain lines elsewhere.
  explicit ProgressLine(ProgressMode mode);
  ~ProgressLine() { close(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Asks for the text or, for programs, the JSON where it is time to print it.
  void update(const std::function<std::string()>& text, const std::function<nlohmann::ordered_json()>& json);
  /// Moves the terminal to a fresh line; nothing is printed afterwards.
  void close();
  [[nodiscard]] double elapsed_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  ProgressMode mode_;
  Clock::time_point start_, next_;
  std::size_t width_ = 0;  ///< characters of the line on the terminal
};

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
  [[nodiscard]] std::string best(const sweep::BestPoint& point) const;

  const sweep::SweepJob& job_;
  ProgressLine line_;
};

}  // namespace shardscape::cli

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(cli::ProgressMode, "auto", "plain", "json", "none");
}  // namespace shardscape
