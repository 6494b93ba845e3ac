// Finds the ways in which an operation can be carried out: which algorithms suit a group, their steps and copies, and
// the messages that each of them sends.
#include "engine/network/prices/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "engine/network/collectives/algorithm_rules.h"
#include "engine/network/collectives/collectives.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"

namespace shardscape::network {

namespace {

bool is_pass(CollectiveOp op) { return operation_of(op) == Operation::point_to_point; }

bool is_grid(DimensionKind kind) {
  return kind == DimensionKind::ring || kind == DimensionKind::mesh || kind == DimensionKind::torus ||
         kind == DimensionKind::king_mesh || kind == DimensionKind::hypercube;
}

/// The properties that the boxes of all groups have in common.
struct Boxes {
  bool all = true;                    ///< every group is a box
  bool grid = true;                   ///< all boxes have two or more axes, on wires that a ring can follow
  std::vector<std::int32_t> extents;  ///< extents of the box with the most steps
  std::int32_t far_steps = 0;         ///< how many of the steps lie along axes of the scale-out network
};

/// Whether members of some group differ in a coordinate of the scale-out network.
bool crosses_scale_out(const Fabric& fabric, const SiblingGroups& groups) {
  std::int64_t stride = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    const std::int64_t size = dimension.size();
    if (dimension.scope == LinkScope::scale_out) {
      for (std::size_t g = 0; g < groups.shapes(); ++g) {
        const std::span<const std::int32_t> group = groups.group(g);
        const auto coordinate = [&](std::int32_t rank) { return rank / stride % size; };
        const std::int64_t first = coordinate(group.front());
        if (std::ranges::any_of(group, [&](std::int32_t rank) { return coordinate(rank) != first; }))
          return true;
      }
    }
    stride *= size;
  }
  return false;
}

Boxes boxes_of(const Fabric& fabric, const SiblingGroups& groups) {
  Boxes result;
  std::int32_t most = -1;
  for (std::size_t g = 0; g < groups.shapes() && result.all; ++g) {
    GroupBox box;
    result.all = split_into_box(fabric, groups.group(g), box);
    if (!result.all) break;
    result.grid = result.grid && box.levels.size() > 1;
    std::vector<std::int32_t> extents;
    std::int32_t steps = 0, far_steps = 0;
    for (const GroupBox::Level& level : box.levels) {
      extents.push_back(static_cast<std::int32_t>(level.positions.size()));
      steps += extents.back() - 1;
      const DimensionSpec& dimension = fabric.spec().dimensions[static_cast<std::size_t>(level.dimension)];
      if (dimension.scope == LinkScope::scale_out) far_steps += extents.back() - 1;
      result.grid = result.grid && is_grid(dimension.kind);
    }
    if (steps > most) {
      result.extents = std::move(extents);
      result.far_steps = far_steps;
    }
    most = std::max(most, steps);
  }
  result.grid = result.grid && result.all;
  return result;
}

bool reduces_in_network(const PricedNetwork& network, const SiblingGroups& groups) {
  const std::vector<DimensionSpec>& dimensions = network.fabric().spec().dimensions;
  if (std::ranges::none_of(dimensions, &DimensionSpec::in_network_reduction)) return false;
  SwitchTree tree;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    if (!find_switch_tree(network.routes(), groups.group(g), tree)) return false;
  }
  return true;
}

/// Number of links that the messages of one round of all rings cross, each counted as often as it is crossed.
std::size_t links_crossed(const Fabric& fabric, const SiblingGroups& rings) {
  std::vector<std::int32_t> path;
  for (std::size_t g = 0; g < rings.count(); ++g) {
    const std::span<const std::int32_t> ring = rings.group(g);
    for (std::size_t i = 0; i < ring.size(); ++i)
      fabric.append_route(ring[i], ring[i + 1 == ring.size() ? 0 : i + 1], path);
  }
  return path.size();
}

std::vector<PointToPoint> sends_of(CollectiveOp op, const SiblingGroups& groups) {
  std::vector<PointToPoint> sends;
  const std::size_t n = groups.size;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::span<const std::int32_t> group = groups.group(g);
    for (std::size_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      if (op != CollectiveOp::ring_pass && last) break;
      const std::int32_t next = group[last ? 0 : i + 1];
      sends.push_back({group[i], next, 1, 0});
      if (op == CollectiveOp::chain_pass) sends.push_back({next, group[i], 1, 0});
    }
  }
  return sends;
}

}  // namespace

BytesPerSecond link_behind_switch(const Fabric& fabric, const SiblingGroups& groups) {
  BytesPerSecond least(std::numeric_limits<double>::infinity());
  for (std::size_t g = 0; g < groups.shapes(); ++g) {
    GroupBox box;
    if (!split_into_box(fabric, groups.group(g), box) || box.levels.size() != 1) return BytesPerSecond(0);
    const auto index = static_cast<std::size_t>(box.levels.front().dimension);
    const DimensionSpec& dimension = fabric.spec().dimensions[index];
    if (dimension.kind != DimensionKind::switched || dimension.scope != LinkScope::scale_up)
      return BytesPerSecond(0);
    least = std::min(least, dimension.bandwidth);
  }
  return least;
}

std::string to_string(const CollectiveChoice& choice) {
  if (choice.in_node) return "protocols of the node";
  std::string text(name_of(choice.algorithm));
  if (choice.ring_order == RingOrder::hamiltonian) text += " along a Hamiltonian cycle";
  if (choice.ring_order == RingOrder::channels)
    text += choice.channels == 1 ? " over a channel" : fmt::format(" over {} channels", choice.channels);
  return text;
}

std::vector<Way> ways_of(CollectiveOp op, const SiblingGroups& groups, const PricedNetwork& healthy,
                         const StackProfile::Communication& communication) {
  const Fabric& fabric = healthy.fabric();
  std::vector<Way> result;
  const bool far = crosses_scale_out(fabric, groups);
  const Operation operation = operation_of(op);
  const auto n = static_cast<std::int32_t>(groups.size);
  const auto add = [&](Algorithm algorithm, RingOrder order, double steps) {
    const double copied = rules_of(algorithm).copied(operation, n);
    result.push_back({{algorithm, order}, copied, steps, far ? steps : 0});
  };
  if (is_pass(op) || is_skewed(op)) {
    add(Algorithm::direct, RingOrder::listed, 1);
    return result;
  }
  const Boxes boxes = boxes_of(fabric, groups);
  const auto meets = [&](GroupNeed need) {
    switch (need) {
      case GroupNeed::nothing:
        return true;
      case GroupNeed::power_of_two:
        return std::has_single_bit(groups.size);
      case GroupNeed::box:
        return boxes.all && boxes.extents.size() > 1;
      case GroupNeed::switches:
        return reduces_in_network(healthy, groups);
    }
    return false;
  };
  const bool several = communication.algorithms.size() > 1;
  for (const Algorithm algorithm : communication.algorithms) {
    if (!supports(operation, algorithm)) continue;
    const AlgorithmRules& rules = rules_of(algorithm);
    if (rules.every_pair && several && n > kMostDirectRanks && operation != Operation::all_to_all) continue;
    if (!meets(rules.need)) continue;
    const double steps = rules.steps(operation, n, boxes.extents);
    add(algorithm, RingOrder::listed, steps);
    if (rules.need == GroupNeed::box) {
      result.back().far_steps = passes_of(operation) * boxes.far_steps;
    }
    if (rules.rings > 0 && boxes.grid && operation != Operation::broadcast) {
      add(algorithm, RingOrder::hamiltonian, steps);
      result.back().shorter =
          links_crossed(fabric, along_wires(groups, fabric)) < links_crossed(fabric, groups);
    }
    if (rules.rings != 1 || operation == Operation::broadcast) continue;
    // Where the groups are boxes of several axes, dimension_wise has as many rings (one for each seat) but far fewer
    // messages.
    const bool by_dimension = std::ranges::find(communication.algorithms, Algorithm::dimension_wise) !=
                              communication.algorithms.end();
    if (boxes.all && boxes.extents.size() > 1 && by_dimension) continue;
    if (const std::int32_t channels = channels_of(fabric, groups)) {
      // Hops over unlike links don't keep step, so rank steps are part of each hop's latency and none are counted here.
      add(algorithm, RingOrder::channels, 0);
      result.back().choice.channels = channels;
    }
  }
  if (result.empty()) {
    const Algorithm plain = operation == Operation::all_to_all ? Algorithm::direct : Algorithm::ring;
    add(plain, RingOrder::listed, rules_of(plain).steps(operation, n, {}));
  }
  return result;
}

Way way_in_node(CollectiveOp op, std::size_t members) {
  const auto n = static_cast<std::int32_t>(members);
  const AlgorithmRules& rules = rules_of(Algorithm::direct);
  return {{.algorithm = Algorithm::direct, .in_node = true},
          rules.copied(operation_of(op), n),
          rules.steps(operation_of(op), n, {})};
}

namespace {

/// The pattern without groups and bytes, as curves take it.
Pattern pattern_of(CollectiveOp op, const Way& way) {
  Pattern pattern;
  pattern.operation = operation_of(op);
  pattern.algorithm = way.choice.algorithm;
  if (way.choice.ring_order == RingOrder::channels) {
    pattern.ring_order = RingOrder::channels;
    pattern.channels = way.choice.channels;
    pattern.rank_steps = true;
  }
  pattern.skew = way.skew;
  return pattern;
}

/// Returns ask(sends) of a pass, or ask(pattern, groups in the order in which they send) of other operations.
template <class Ask>
auto ask_maker(CollectiveOp op, const Way& way, const SiblingGroups& groups, const Fabric& fabric,
               const Ask& ask) {
  if (is_pass(op)) return ask(sends_of(op, groups));
  const bool turned = way.choice.ring_order == RingOrder::hamiltonian;
  return ask(pattern_of(op, way), turned ? along_wires(groups, fabric) : groups);
}

}  // namespace

Pattern pattern_of(CollectiveOp op, const Way& way, const SiblingGroups& groups, double bytes) {
  Pattern pattern = pattern_of(op, way);
  pattern.bytes = bytes;
  pattern.chunks = chunks_of(pattern.operation, pattern.algorithm, bytes);
  pattern.ring_order = way.choice.ring_order;
  if (is_pass(op)) {
    pattern.sends = sends_of(op, groups);
    for (PointToPoint& send : pattern.sends) send.bytes = bytes;
  } else {
    pattern.groups = groups.nested();
  }
  return pattern;
}

CostCurve curve_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                   const Fabric& fabric, bool with_links) {
  maker.collect_links(with_links);
  return ask_maker(op, way, groups, fabric, [&](const auto&... asked) {
    if constexpr (sizeof...(asked) == 1) {
      return maker.one_round(asked..., groups.copies);
    } else {
      return maker.make(asked...);
    }
  });
}

LinkSet links_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                 const Fabric& fabric) {
  return ask_maker(op, way, groups, fabric, [&](const auto&... asked) { return maker.links(asked...); });
}

LinkLoads loads_of(CurveMaker& maker, CollectiveOp op, const Way& way, const SiblingGroups& groups,
                   const Fabric& fabric) {
  return ask_maker(op, way, groups, fabric, [&](const auto&... asked) { return maker.loads(asked...); });
}

}  // namespace shardscape::network
