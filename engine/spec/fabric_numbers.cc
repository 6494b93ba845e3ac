// The tables of a fabric's numbers: the key and the accessor of each, its range, meaning, use of the key, and the kinds
// of dimension that have it.
#include "engine/spec/fabric_numbers.h"

#include <fmt/format.h>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

using namespace ranges;
using enum KeyUse;
using enum DimensionKind;

constexpr Range kExtent{1, 1 << 30};
constexpr Kinds kWired = {ring,      mesh,      torus,    fully_connected, switched,
                          king_mesh, hypercube, fat_tree, dragonfly};

/// The key of a field, and the field, which may lie in a part of the dimension.
#define SHARDSCAPE_NUMBER(FIELD) \
#FIELD, [](DimensionSpec & d) -> auto& { return d.FIELD; }
#define SHARDSCAPE_IN(PART, FIELD) \
#FIELD, [](DimensionSpec & d) -> auto& { return d.PART.FIELD; }
#define SHARDSCAPE_OF_LINK(FIELD) \
#FIELD, [](CustomSpec::Link & l) -> auto& { return l.FIELD; }

constexpr DimensionNumber kDimensionNumbers[] = {
    {{SHARDSCAPE_NUMBER(bandwidth), kBandwidth, "of a link, per direction; or `bandwidth_per_gpu`",
      std::nullopt, required, "bandwidth_per_gpu"},
     kWired},
    {{SHARDSCAPE_NUMBER(latency), kTime, "of a link", std::nullopt, required}, kWired},
    {{SHARDSCAPE_IN(fat_tree, levels), Range{1, 8}, "levels of switches; the most, where the size fills",
      std::nullopt, required},
     kTrees},
    {{SHARDSCAPE_IN(fat_tree, radix), Range{2, 1 << 16}, "ports of a switch", std::nullopt, required},
     kTrees},
    {{SHARDSCAPE_IN(fat_tree, oversubscription), Range{1, 1 << 16}, "ports of a leaf down for each port up"},
     kTrees,
     true},
    {{SHARDSCAPE_IN(fat_tree, uplink_bandwidth), kBandwidth, "of a link between switches"}, kTrees, true},
    {{SHARDSCAPE_IN(fat_tree, uplink_latency), kTime, "of a link between switches"}, kTrees, true},
    {{SHARDSCAPE_NUMBER(rails), kExtent, "separate trees that the adapters of a node are dealt over"},
     kTrees},
    {{SHARDSCAPE_IN(dragonfly, groups), kExtent, "groups of routers; left out: as many as the size fills"},
     {dragonfly}},
    {{SHARDSCAPE_IN(dragonfly, routers_per_group), kExtent, "routers of a group", std::nullopt, required},
     {dragonfly}},
    {{SHARDSCAPE_IN(dragonfly, hosts_per_router), kExtent, "GPUs of a router", std::nullopt, required},
     {dragonfly}},
    {{SHARDSCAPE_IN(dragonfly, global_bandwidth), kBandwidth, "of a link between groups"}, {dragonfly}},
    {{SHARDSCAPE_IN(dragonfly, global_latency), kTime, "of a link between groups"}, {dragonfly}},
    {{SHARDSCAPE_IN(custom, switches), Range{0, 4096}, "further vertices, numbered after the ranks"},
     kCustom},
    {{SHARDSCAPE_NUMBER(gpus_per_tray), kExtent, "jobs take the GPUs of a switch in multiples of this"},
     {switched}},
    {{SHARDSCAPE_NUMBER(nics_per_node), kExtent,
      "adapters of a node; fewer than GPUs: neighbours share one; more: they add up"},
     kSwitches},
};

constexpr NumberRow<CustomSpec::Link> kLinkNumbers[] = {
    {SHARDSCAPE_OF_LINK(bandwidth), kBandwidth, "of a custom link, per direction", std::nullopt, required},
    {SHARDSCAPE_OF_LINK(latency), kTime, "of a custom link", std::nullopt, required},
};
#undef SHARDSCAPE_NUMBER
#undef SHARDSCAPE_IN
#undef SHARDSCAPE_OF_LINK

}  // namespace

std::string no_effect(const Kinds& kinds, const DimensionSpec& dimension, bool up) {
  if (!kinds.has(dimension.kind)) {
    if (kinds.bits == kWired.bits) return "has no effect on a custom dimension, whose links have their own";
    std::string names;
    for (const std::string_view name : enum_names<DimensionKind>()) {
      if (kinds.has(*parse_enum<DimensionKind>(name)))
        names.append(names.empty() ? "a " : " or a ").append(name);
    }
    return fmt::format("has no effect on a {}, only on {}", name_of(dimension.kind), names);
  }
  if (up && dimension.fat_tree.levels == 1)
    return "has no effect in a fat_tree of one level, which has no ports up";
  return {};
}

std::span<const DimensionNumber> dimension_numbers() { return kDimensionNumbers; }

std::span<const NumberRow<CustomSpec::Link>> custom_link_numbers() { return kLinkNumbers; }

}  // namespace shardscape
