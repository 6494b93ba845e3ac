// The numbers of a dimension of a fabric, one row for each, and which kinds of dimension have them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "engine/spec/fabric_spec.h"
#include "engine/spec/number_row.h"

namespace shardscape {

/// A set of kinds of dimension.
struct Kinds {
  std::uint32_t bits = 0;
  constexpr Kinds(std::initializer_list<DimensionKind> kinds) {
    for (const DimensionKind kind : kinds) bits |= 1U << static_cast<unsigned>(kind);
  }
  [[nodiscard]] constexpr bool has(DimensionKind kind) const {
    return (bits >> static_cast<unsigned>(kind) & 1U) != 0;
  }
};
inline constexpr Kinds kTrees = {DimensionKind::fat_tree};
inline constexpr Kinds kSwitches = {DimensionKind::switched, DimensionKind::fat_tree};
inline constexpr Kinds kCustom = {DimensionKind::custom};

/// Why a key that only some kinds have does not belong to a dimension: "has no effect on a ring, only on a fat_tree";
/// empty where it does. `up`: the key is about ports of leaves towards other switches.
std::string no_effect(const Kinds& kinds, const DimensionSpec& dimension, bool up = false);

struct DimensionNumber : NumberRow<DimensionSpec> {
  Kinds kinds;
  bool up = false;

  [[nodiscard]] std::string no_effect(const DimensionSpec& dimension) const {
    return shardscape::no_effect(kinds, dimension, up);
  }
  /// The key that states the number: of a bandwidth by what it counts.
  [[nodiscard]] std::string_view key(const DimensionSpec& dimension) const {
    return total.empty() || dimension.basis == BandwidthBasis::link ? path : total;
  }
  /// Whether the number is a rate of links rather than a part of the wiring.
  [[nodiscard]] bool rate() const { return !range.unit.empty(); }
};
/// All numbers of a dimension but its extents. Keys lie flat in the map of a dimension.
std::span<const DimensionNumber> dimension_numbers();

/// The numbers of a link of a custom dimension but its ends.
std::span<const NumberRow<CustomSpec::Link>> custom_link_numbers();

}  // namespace shardscape
