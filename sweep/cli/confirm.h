// Rows of a result file executed as well: every operator and message of their plans (the flattened mode), for the few
// that are shown. The study that the file holds says what they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results_schema/reader.h"

namespace shardscape::cli {

/// Rows that are executed where nobody says how many.
inline constexpr std::size_t kConfirmedRows = 10;

struct ConfirmWish {
  std::size_t rows = kConfirmedRows;  ///< the first so many; 0: none
  bool asked = false;                 ///< by --confirm: whatever it takes, within kMostRowEvents for each
  const std::atomic<bool>* stop = nullptr;  ///< ends it within the row at hand; may be null
  std::string why_none = {};  ///< why none of the rows can be executed, as a clause; empty where they may be
};

/// Events of one row, and of all together where nobody asked for so many: some 70 to 500 ns each. How many an execution
/// takes does not depend on the machine, so what is executed doesn't, either.
inline constexpr std::int64_t kMostRowEvents = 2'000'000'000, kMostUnaskedEvents = 20'000'000;

struct Executions {
  std::vector<std::vector<double>> values;  ///< by column that was asked for and row; NaN: not executed
  std::size_t rows = 0;                     ///< executed
  std::size_t too_long = 0;  ///< given up, or not begun: they take too many events for any wish
  std::size_t left = 0;      ///< not begun, as they would take what nobody asked for
  std::size_t stopped = 0;   ///< not begun, or not ended, as the user stopped it
  double cpu_seconds = 0;
  std::string why_none;  ///< why nothing can be executed, as a clause; empty where something may be
};

/// Executes the first of the rows and reads off the columns. In the order of the rows, one after the other.
Executions execute_rows(const results::ResultReader& reader, std::span<const std::uint64_t> rows,
                        std::span<const std::string> columns, const ConfirmWish& wish);

}  // namespace shardscape::cli
