// Which points of a study the rows of a sweep are: all of them, the first ones (a prefix of the ids), a sample spread
// over all ids, or those that a search visited; and which part of them one file holds.
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

struct PointSelection {
  SelectionKind kind = SelectionKind::all;
  std::uint64_t study_points = 0;  ///< number of points of the whole study
  std::uint64_t seed = 0;          ///< seed of a sample
  /// Ids of a search's points, ascending, while the file is written; afterwards only its rows have them.
  std::shared_ptr<const std::vector<std::uint64_t>> ids = nullptr;

  /// Whether point() may be called: not for a search that was read from a file.
  [[nodiscard]] bool knows_points() const { return kind != SelectionKind::search || ids != nullptr; }
  /// The id of row `row` of `rows` chosen points. Ascends with the row and depends on the arguments alone.
  [[nodiscard]] std::uint64_t point(std::uint64_t row, std::uint64_t rows) const;
  /// Two searches are equal if their studies are: what they visited is in their rows.
  friend bool operator==(const PointSelection& a, const PointSelection& b) {
    return a.kind == b.kind && a.study_points == b.study_points && a.seed == b.seed;
  }
};

/// Shards first .. last of `count` equal ones. count 0: parts of different divisions, merged.
struct ShardRange {
  std::uint64_t first = 1, last = 1, count = 1;
  friend bool operator==(const ShardRange&, const ShardRange&) = default;
};

/// The shards as "3/16" or "1-2/16"; empty where count is 0.
std::string to_string(const ShardRange& shards);
/// Reads such a text; nothing for other texts.
std::optional<ShardRange> parse_shards(std::string_view text);

}  // namespace shardscape::results
