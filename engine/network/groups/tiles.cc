#include "engine/network/groups/tiles.h"

#include <algorithm>
#include <cstddef>

namespace shardscape::network {

namespace {

using Level = RankGroup::Level;

std::int32_t end_of(const Level& level) { return level.stride * level.extent; }

bool inside(const Level& digit, std::int32_t begin, std::int32_t end) {
  return begin <= digit.stride && end_of(digit) <= end;
}

bool inside(const Level& digit, const Level& level) { return inside(digit, level.stride, end_of(level)); }

/// The digits of rank numbers, innermost first; empty where levels and axes do not nest.
std::vector<Level> digits_of(const RankGroup& group, const Fabric& fabric, const Slice& slice) {
  std::vector<std::int32_t> cuts = {1, fabric.ranks()};
  const auto cut = [&](const Level& level) {
    if (level.extent > 1) cuts.insert(cuts.end(), {level.stride, end_of(level)});
  };
  for (std::int32_t i = 0; i < group.depth; ++i) cut(group.levels[static_cast<std::size_t>(i)]);
  cut(slice.axis);
  for (const Fabric::Axis& axis : fabric.axes()) cut({axis.rails, axis.sharing});
  std::int32_t stride = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    for (const std::int64_t extent : dimension.shape) {
      cut({static_cast<std::int32_t>(extent), stride});
      stride *= static_cast<std::int32_t>(extent);
    }
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  if (cuts.front() != 1 || cuts.back() != fabric.ranks()) return {};
  std::vector<Level> digits;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i + 1] % cuts[i] != 0) return {};
    digits.push_back({cuts[i + 1] / cuts[i], cuts[i]});
  }
  return digits;
}

/// Applies the rules at the top of tiles.h.
class Copies {
 public:
  Copies(const Fabric& fabric, std::vector<Level> varied) : fabric_(fabric), varied_(std::move(varied)) {}

  /// Whether groups that differ only in this digit are copies of each other.
  [[nodiscard]] bool along(const Level& digit) const {
    for (std::size_t a = 0; a < fabric_.axes().size(); ++a) {
      const Fabric::Axis& axis = fabric_.axes()[a];
      const std::int32_t begin = axis.stride, end = axis.stride * axis.size;
      const bool crossed =
          std::ranges::any_of(varied_, [&](const Level& v) { return inside(v, begin, end); });
      if (!crossed || digit.stride >= end) continue;
      if (end_of(digit) <= begin ? !below(a, digit) : !within(a, digit)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool below(std::size_t a, const Level& digit) const {
    const Fabric::Axis& axis = fabric_.axes()[a];
    const std::int32_t rails_end = axis.sharing * axis.rails;
    if (axis.lanes == 1 || inside(digit, axis.sharing, rails_end)) return true;
    return digit.stride >= rails_end && fabric_.alike_by_digits(a);
  }

  [[nodiscard]] bool within(std::size_t a, const Level& digit) const {
    const Fabric::Axis& axis = fabric_.axes()[a];
    if (fabric_.alike_by_digits(a)) return true;
    const DimensionSpec& dimension = fabric_.spec().dimensions[static_cast<std::size_t>(axis.dimension)];
    // A search decides which spine reduces for a group, and the tree below it, so copies can't be taken for granted.
    if (axis.kind == DimensionKind::fat_tree && dimension.in_network_reduction) return false;
    const bool blocks = std::ranges::all_of(varied_, [&](const Level& v) {
      return v.stride < axis.stride || end_of(v) <= digit.stride || v.stride >= axis.stride * axis.size;
    });
    return blocks && fabric_.alike_by_blocks(a, digit.stride / axis.stride);
  }

  const Fabric& fabric_;
  std::vector<Level> varied_;
};

}  // namespace

Tile tile_of(const RankGroup& group, const Fabric& fabric, const Slice& slice) {
  Tile tile;
  if (group.mirror.extent > 1) return tile;
  const std::vector<Level> digits = digits_of(group, fabric, slice);
  if (digits.empty()) return tile;
  tile.known = true;
  std::vector<Level> varied, others;
  for (const Level& digit : digits) {
    const auto end = group.levels.begin() + group.depth;
    const bool differs =
        std::any_of(group.levels.begin(), end, [&](const Level& level) { return inside(digit, level); });
    if (differs) varied.push_back(digit);
    if (!differs && (slice.everything() || !inside(digit, slice.axis))) others.push_back(digit);
  }
  const Copies copies(fabric, std::move(varied));
  for (const Level& digit : others) {
    if (copies.along(digit)) {
      tile.copies *= digit.extent;
    } else {
      tile.digits.push_back(digit);
    }
  }
  return tile;
}

}  // namespace shardscape::network
