#include "engine/network/groups/sibling_groups.h"

#include <algorithm>
#include <numeric>

#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"
#include "engine/network/groups/tiles.h"

namespace shardscape::network {

namespace {

/// Whether a group starts at `rank`: it has coordinate 0 in every level, and lies in the first half of the mirror.
bool starts_group(const RankGroup& group, std::int32_t rank) {
  if (group.mirrored(rank) < rank) return false;
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    if (rank / level.stride % level.extent != 0) return false;
  }
  return true;
}

/// Members of the group that starts at rank 0.
std::vector<std::int32_t> offsets_of(const RankGroup& group) {
  std::vector<std::int32_t> offsets = {0};
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    const std::size_t inner = offsets.size();
    for (std::int32_t k = 1; k < level.extent; ++k) {
      for (std::size_t j = 0; j < inner; ++j) offsets.push_back(offsets[j] + k * level.stride);
    }
  }
  return offsets;
}

}  // namespace

std::vector<std::vector<std::int32_t>> SiblingGroups::nested(std::span<const std::size_t> which) const {
  std::vector<std::vector<std::int32_t>> result;
  result.reserve(which.size());
  for (const std::size_t g : which) result.emplace_back(group(g).begin(), group(g).end());
  return result;
}

std::vector<std::vector<std::int32_t>> SiblingGroups::nested() const {
  std::vector<std::size_t> all(count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return nested(all);
}

SiblingGroups sibling_groups(const RankGroup& group, const Fabric& fabric,
                             std::span<const std::int32_t> placement, const Slice& slice) {
  const std::vector<std::int32_t> offsets = offsets_of(group);
  SiblingGroups result;
  result.size = static_cast<std::size_t>(group.size());
  const auto ranks = placement.empty() ? fabric.ranks() : static_cast<std::int32_t>(placement.size());
  result.ranks.reserve(static_cast<std::size_t>(ranks / slice.axis.extent));
  for (std::int32_t origin = 0; origin < ranks; ++origin) {
    const std::int32_t mirrored = group.mirrored(origin);
    if (!starts_group(group, origin) || !(slice.contains(origin) || slice.contains(mirrored))) continue;
    const auto add = [&](std::int32_t start) {
      for (const std::int32_t offset : offsets) {
        const std::int32_t rank = start + offset;
        result.ranks.push_back(placement.empty() ? rank : placement[static_cast<std::size_t>(rank)]);
      }
    };
    add(origin);
    if (mirrored != origin) add(mirrored);
  }
  return result;
}

SiblingGroups first_tile(const RankGroup& group, const Fabric& fabric, const Slice& slice) {
  const Tile tile = tile_of(group, fabric, slice);
  if (!tile.known) return sibling_groups(group, fabric, {}, slice);
  std::vector<std::int32_t> starts = {slice.everything() ? 0 : slice.index * slice.axis.stride};
  for (const RankGroup::Level& digit : tile.digits) {
    const std::size_t inner = starts.size();
    for (std::int32_t k = 1; k < digit.extent; ++k) {
      for (std::size_t i = 0; i < inner; ++i) starts.push_back(starts[i] + k * digit.stride);
    }
  }
  SiblingGroups result;
  result.size = static_cast<std::size_t>(group.size());
  result.copies = tile.copies;
  result.tile_of = slice;
  result.ranks.resize(starts.size() * result.size);
  const std::vector<std::int32_t> offsets = offsets_of(group);
  auto next = result.ranks.begin();
  for (const std::int32_t start : starts)
    next = std::ranges::transform(offsets, next, [&](std::int32_t offset) { return start + offset; }).out;
  return result;
}

SiblingGroups pairs_of(const SiblingGroups& groups, std::size_t first, std::size_t second) {
  SiblingGroups pairs;
  pairs.size = 2;
  pairs.copies = groups.copies;
  pairs.ranks.reserve(2 * groups.count());
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::span<const std::int32_t> group = groups.group(g);
    pairs.ranks.insert(pairs.ranks.end(), {group[first], group[second]});
  }
  return pairs;
}

SiblingGroups along_wires(const SiblingGroups& groups, const Fabric& fabric) {
  SiblingGroups result;
  result.size = groups.size;
  result.copies = groups.copies;
  result.ranks.reserve(groups.ranks.size());
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::vector<std::int32_t> order = ring_order(fabric, groups.group(g));
    result.ranks.insert(result.ranks.end(), order.begin(), order.end());
  }
  return result;
}

SiblingGroups over_channels(const SiblingGroups& groups, const Fabric& fabric, std::int32_t channels) {
  SiblingGroups result;
  result.size = groups.size;
  result.copies = groups.copies;
  result.ranks.reserve(groups.ranks.size() * static_cast<std::size_t>(channels));
  for (std::size_t g = 0; g < groups.count(); ++g) {
    for (const std::vector<std::int32_t>& ring : channel_rings(fabric, groups.group(g), channels))
      result.ranks.insert(result.ranks.end(), ring.begin(), ring.end());
  }
  return result;
}

std::vector<std::int64_t> places_of(const Fabric& fabric, std::span<const std::int32_t> ranks,
                                    LinkScope scope) {
  std::vector<std::int64_t> places(ranks.size());
  std::int64_t stride = 1, place_stride = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    const std::int64_t size = dimension.size();
    if (dimension.scope == scope) {
      for (std::size_t i = 0; i < ranks.size(); ++i) places[i] += place_stride * (ranks[i] / stride % size);
      place_stride *= size;
    }
    stride *= size;
  }
  return places;
}

}  // namespace shardscape::network
