// Which points of a sweep become rows of its file. All are evaluated and counted, whatever is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape::results {

/// pareto: the feasible points that no other dominates; top: the best by the first objective. As in /summary, points
/// with a measure that is NaN are not ranked, and of equal points the one with the smallest id is first.
enum class RowChoice : std::uint8_t { all, feasible, pareto, top };

struct StoredRows {
  RowChoice choice = RowChoice::all;
  /// For `top`: the number of rows, or fewer where fewer are feasible; otherwise 0.
  std::uint64_t count = 0;
  std::vector<std::string> front;  ///< for `pareto`: columns with a direction; otherwise empty

  [[nodiscard]] bool all() const { return choice == RowChoice::all; }
  /// The columns whose values decide: for `pareto` its own, for `top` the objectives, for the others none.
  [[nodiscard]] const std::vector<std::string>& measures(const std::vector<std::string>& objectives) const;
  friend bool operator==(const StoredRows&, const StoredRows&) = default;
};

/// The choice as text: "all", "feasible", "pareto step_time_s memory_peak_bytes", "top 1000".
std::string to_string(const StoredRows& rows);
/// Reads such a text; nothing for other texts.
std::optional<StoredRows> parse_stored_rows(std::string_view text);

}  // namespace shardscape::results
