// Which points of a study the rows of a sweep are: all of them, the first so many (a prefix of the ids), a
// sample spread over all ids, or those that a search visited; and which part of those one file holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape::results {

enum class SelectionKind : std::uint8_t { all, first, sample, search };

}  // namespace shardscape::results

namespace shardscape {
SHARDSCAPE_ENUM_NAMES(results::SelectionKind, "all", "first", "sample", "search");
}  // namespace shardscape

namespace shardscape::results {

struct PointSelection {
  SelectionKind kind = SelectionKind::all;
  std::uint64_t study_points = 0;  ///< of the whole study
  std::uint64_t seed = 0;          ///< of a sample
  /// Of a search the ids, ascending, while it is written; files have them in their rows only.
  std::shared_ptr<const std::vector<std::uint64_t>> ids = nullptr;

  /// Whether point() is known: not of a search that was read from a file.
  [[nodiscard]] bool knows_points() const { return kind != SelectionKind::search || ids != nullptr; }
  /// The id of row `row` of `rows` chosen points. Ascends with the row; depends on its arguments alone.
  [[nodiscard]] std::uint64_t point(std::uint64_t row, std::uint64_t rows) const;
  /// Of two searches by their studies: what they visited is told by their rows.
  friend bool operator==(const PointSelection& a, const PointSelection& b) {
    return a.kind == b.kind && a.study_points == b.study_points && a.seed == b.seed;
  }
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
