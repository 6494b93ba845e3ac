// Executes rows of a result file in flattened mode, with every operator and message of their plans, for the few rows
// that are shown. The study in the file says what the plans are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"

namespace shardscape::cli {

/// Number of rows that are executed where the user gives none.
inline constexpr std::size_t kConfirmedRows = 10;

inline constexpr const char* kStopped = "when it was stopped";

struct ConfirmWish {
  std::size_t rows = kConfirmedRows;  ///< number of first rows to execute; 0: none
  /// Asked for by --confirm: executed whatever they take, up to kMostRowEvents each.
  bool asked = false;
  /// Ends executions where it gives a reason, as a clause such as kStopped; null to go on. May be empty.
  std::function<const char*()> why_stop = {};
  std::string why_none = {};  ///< why rows cannot be executed, as a clause; empty where they may be
};

/// The most events of one row, and of all rows together where the user asked for none: some 70 to 500 ns each. Events
/// do not depend on the machine, so that neither does what is executed.
inline constexpr std::int64_t kMostRowEvents = 2'000'000'000, kMostUnaskedEvents = 20'000'000;
/// Unasked, rows are tried up to so many events where a rough number of theirs is larger than what is left.
inline constexpr std::int64_t kMostTrialEvents = kMostUnaskedEvents / 10;

struct Executions {
  std::vector<std::vector<double>> values;  ///< by requested column and row; NaN: not executed
  std::size_t rows = 0;                     ///< number of rows executed
  /// Number of rows given up or not begun, as they take too many events for any request.
  std::size_t too_long = 0;
  std::size_t left = 0;  ///< number of rows not begun, as the user did not ask for so much
  std::size_t given_up =
      0;                    ///< number of rows begun and given up after kMostTrialEvents, for the same reason
  std::size_t stopped = 0;  ///< number of rows not begun or not ended for the reason `why_stopped`
  const char* why_stopped = nullptr;
  double cpu_seconds = 0;
  std::string why_none;  ///< why no row can be executed, as a clause; empty where some may be
};

/// Executes the first rows and reads off the columns, one row after the other, in order.
Executions execute_rows(const results::ResultReader& reader, std::span<const std::uint64_t> rows,
                        std::span<const std::string> columns, const ConfirmWish& wish);

}  // namespace shardscape::cli
