// Which points of a study the rows of a sweep are: all of them, the first so many (a prefix of the ids), or a
// sample spread over all ids; and which part of those one file holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"

namespace shardscape::results {

enum class SelectionKind : std::uint8_t { all, first, sample };

}  // namespace shardscape::results

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(results::SelectionKind, "all", "first", "sample");
}  // namespace shardscape

namespace shardscape::results {

struct PointSelection {
  SelectionKind kind = SelectionKind::all;
  std::uint64_t study_points = 0;  ///< of the whole study; 0: not recorded (files of schema version 1)
  std::uint64_t seed = 0;          ///< of a sample

  /// The id of row `row` of `rows` chosen points. Ascends with the row; depends on its arguments alone.
  [[nodiscard]] std::uint64_t point(std::uint64_t row, std::uint64_t rows) const;
  friend bool operator==(const PointSelection&, const PointSelection&) = default;
};

/// Shards first .. last of `count` equal ones. count 0: parts of different divisions, put together.
struct ShardRange {
  std::uint64_t first = 1, last = 1, count = 1;
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// "3/16", "1-2/16"; empty where count is 0.
std::string to_string(const ShardRange& shards);
/// The inverse; nothing for other texts.
std::optional<ShardRange> parse_shards(std::string_view text);

}  // namespace shardscape::results
