#include "results_schema/rows/point_selection.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/base/strata.h"

namespace shardscape::results {

std::uint64_t PointSelection::point(std::uint64_t row, std::uint64_t rows) const {
  if (ids != nullptr) return (*ids)[row];
  return kind == SelectionKind::sample ? stratified_choice(study_points, rows, row, seed) : row;
}

std::string to_string(const ShardRange& shards) {
  if (shards.count == 0) return "";
  const std::string last = shards.first == shards.last ? "" : fmt::format("-{}", shards.last);
  return fmt::format("{}{}/{}", shards.first, last, shards.count);
}

std::optional<ShardRange> parse_shards(std::string_view text) {
  if (text.empty()) return ShardRange{1, 1, 0};
  ShardRange shards;
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](std::uint64_t& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    at = stop;
    return error == std::errc();
  };
  const auto mark = [&](char wanted) { return at != end && *at == wanted && (++at, true); };
  if (!number(shards.first)) return std::nullopt;
  shards.last = shards.first;
  if (mark('-') && !number(shards.last)) return std::nullopt;
  if (!mark('/') || !number(shards.count) || at != end) return std::nullopt;
  const bool ordered = 1 <= shards.first && shards.first <= shards.last && shards.last <= shards.count;
  return ordered ? std::optional(shards) : std::nullopt;
}

}  // namespace shardscape::results
