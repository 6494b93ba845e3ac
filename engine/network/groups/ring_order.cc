// Finds boxes of coordinates in groups, and walks through them: a comb or a zigzag that closes to a cycle, else a path.
#include "engine/network/groups/ring_order.h"

#include <algorithm>
#include <bit>

#include "engine/network/groups/channel_rings.h"

namespace shardscape::network {

namespace {

struct FabricAxis {
  std::int32_t dimension = 0;
  std::int32_t stride = 1;
  std::int32_t size = 1;
  bool wraps = false;
};

bool closes(DimensionKind kind) {
  return kind == DimensionKind::ring || kind == DimensionKind::torus ||
         kind == DimensionKind::fully_connected || kind == DimensionKind::switched ||
         kind == DimensionKind::fat_tree || kind == DimensionKind::dragonfly;
}

std::vector<FabricAxis> axes_of(const FabricSpec& spec) {
  std::vector<FabricAxis> axes;
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < spec.dimensions.size(); ++d) {
    const DimensionSpec& dimension = spec.dimensions[d];
    const auto add = [&](std::int32_t size) {
      axes.push_back({static_cast<std::int32_t>(d), stride, size, closes(dimension.kind)});
      stride *= size;
    };
    if (dimension.kind == DimensionKind::hypercube) {
      for (std::int64_t bit = 1; bit < dimension.size(); bit *= 2) add(2);
      continue;
    }
    for (const std::int64_t extent : dimension.shape) add(static_cast<std::int32_t>(extent));
  }
  return axes;
}

using Path = std::vector<std::int32_t>;  // ranks relative to the origin of the box

/// Visits all positions of the levels except `left_out`, on a path whose steps change one coordinate.
Path snake(const GroupBox& box, std::size_t left_out) {
  Path path = {0};
  for (std::size_t l = 0; l < box.levels.size(); ++l) {
    if (l == left_out) continue;
    const GroupBox::Level& level = box.levels[l];
    Path longer;
    longer.reserve(path.size() * level.positions.size());
    for (const std::int32_t position : level.positions) {
      for (const std::int32_t offset : path) {
        longer.push_back(offset + (position - level.positions.front()) * level.stride);
      }
      std::ranges::reverse(path);
    }
    path = std::move(longer);
  }
  return path;
}

/// Visits a table of rows x columns in a cycle whose neighbours are next to each other in a row or column: all columns
/// but the first, row by row and turning at the ends, then back along the first column. It closes if the number of rows
/// is even, or if the last column is adjacent to the first.
template <class Visit>
void comb(std::size_t rows, std::size_t columns, const Visit& visit) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t k = 1; k < columns; ++k) visit(row, row % 2 == 0 ? k : columns - k);
  }
  for (std::size_t row = rows; row > 0; --row) visit(row - 1, 0);
}

std::size_t even_level(const GroupBox& box) {
  std::size_t l = 0;
  while (l < box.levels.size() && box.levels[l].positions.size() % 2 != 0) ++l;
  return l;
}

std::size_t wrapping_level(const GroupBox& box) {
  std::size_t l = 0;
  while (l < box.levels.size() && !box.levels[l].wraps) ++l;
  return l;
}

Path walk(const GroupBox& box) {
  const std::size_t none = box.levels.size();
  if (none < 2) return snake(box, none);
  const auto offset = [&](std::size_t level, std::size_t i) {
    const GroupBox::Level& l = box.levels[level];
    return (l.positions[i] - l.positions.front()) * l.stride;
  };
  Path cycle;
  if (const std::size_t even = even_level(box); even != none) {
    const Path others = snake(box, even);
    comb(box.levels[even].positions.size(), others.size(),
         [&](std::size_t row, std::size_t column) { cycle.push_back(offset(even, row) + others[column]); });
    return cycle;
  }
  if (const std::size_t wrap = wrapping_level(box); wrap != none) {
    // Rows are the positions of the other axes, columns those of the wrapping axis. With an odd number of rows the
    // zigzag ends in the last column, which is adjacent to the first.
    const Path others = snake(box, wrap);
    comb(others.size(), box.levels[wrap].positions.size(),
         [&](std::size_t row, std::size_t column) { cycle.push_back(others[row] + offset(wrap, column)); });
    return cycle;
  }
  return snake(box, none);
}

/// The coordinates of the members along an axis, ascending. `met` is scratch memory, with one bit per coordinate.
void positions_along(const FabricAxis& axis, std::span<const std::int32_t> group,
                     std::vector<std::uint64_t>& met, std::vector<std::int32_t>& positions) {
  constexpr std::uint32_t kBits = 64;
  met.assign(static_cast<std::size_t>(axis.size) / kBits + 1, 0);
  const auto stride = static_cast<std::uint32_t>(axis.stride), size = static_cast<std::uint32_t>(axis.size);
  for (const std::int32_t rank : group) {
    const std::uint32_t position = static_cast<std::uint32_t>(rank) / stride % size;
    met[position / kBits] |= std::uint64_t{1} << (position % kBits);
  }
  for (std::size_t word = 0; word < met.size(); ++word) {
    for (std::uint64_t bits = met[word]; bits != 0; bits &= bits - 1)
      positions.push_back(static_cast<std::int32_t>(word * kBits) + std::countr_zero(bits));
  }
}

}  // namespace

std::int32_t GroupBox::size() const {
  std::int32_t product = 1;
  for (const Level& level : levels) product *= static_cast<std::int32_t>(level.positions.size());
  return product;
}

bool split_into_box(const Fabric& fabric, std::span<const std::int32_t> group, GroupBox& box) {
  box = {};
  if (group.empty()) return false;
  box.origin = *std::ranges::min_element(group);
  std::size_t product = 1;
  std::vector<std::uint64_t> met;
  for (const FabricAxis& axis : axes_of(fabric.spec())) {
    GroupBox::Level level{.dimension = axis.dimension, .stride = axis.stride};
    positions_along(axis, group, met, level.positions);
    leaf_order(fabric, axis.dimension, level.positions);
    level.wraps =
        axis.wraps && level.positions.size() == static_cast<std::size_t>(axis.size) && axis.size > 2;
    product *= level.positions.size();
    if (product > group.size()) return false;
    if (level.positions.size() > 1) box.levels.push_back(std::move(level));
  }
  return product == group.size();
}

BoxesAlike::BoxesAlike(const Fabric& fabric, std::span<const std::int32_t> group, const GroupBox& box)
    : fabric_(fabric), group_(group), box_(box) {
  const std::vector<FabricAxis> axes = axes_of(fabric.spec());
  for (GroupBox::Level& level : box_.levels) {
    std::ranges::sort(level.positions);
    const std::int32_t least = level.positions.front();
    for (std::int32_t& position : level.positions) position -= least;
    sizes_.push_back(std::ranges::find_if(axes, [&](const FabricAxis& axis) {
                       return axis.stride == level.stride && axis.size > 1;
                     })->size);
  }
}

bool BoxesAlike::split(std::span<const std::int32_t> group, GroupBox& box) const {
  const std::int32_t further = group.front() - group_.front();
  const bool alike = std::ranges::equal(group, group_, {}, [&](std::int32_t rank) { return rank - further; });
  if (!alike) return split_into_box(fabric_, group, box);
  box.origin = box_.origin + further;
  box.levels.resize(box_.levels.size());
  for (std::size_t l = 0; l < box_.levels.size(); ++l) {
    const GroupBox::Level& known = box_.levels[l];
    const std::int32_t least = box.origin / known.stride % sizes_[l];
    // If the box crosses the end of an axis, its coordinates are not those of the first box moved along.
    if (least + known.positions.back() >= sizes_[l]) return split_into_box(fabric_, group, box);
    GroupBox::Level& level = box.levels[l];
    level.dimension = known.dimension;
    level.stride = known.stride;
    level.wraps = known.wraps;
    level.positions.clear();
    for (const std::int32_t position : known.positions) level.positions.push_back(least + position);
    leaf_order(fabric_, level.dimension, level.positions);
  }
  return true;
}

std::vector<std::int32_t> ring_order(const Fabric& fabric, std::span<const std::int32_t> group) {
  GroupBox box;
  std::vector<std::int32_t> order(group.begin(), group.end());
  if (!split_into_box(fabric, group, box)) return order;
  order = walk(box);
  for (std::int32_t& rank : order) rank += box.origin;
  std::rotate(order.begin(), std::ranges::find(order, group.front()), order.end());
  return order;
}

}  // namespace shardscape::network
