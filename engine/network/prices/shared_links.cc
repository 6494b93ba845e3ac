// Which links operations use on a healthy fabric, and how those that send at once share them. What the groups of a tile
// do decides where it can (tiles.h); all groups are looked at only where it does not.
#include <algorithm>

#include "engine/network/prices/healthy_costs.h"

namespace shardscape::network {

namespace {

/// Sums in different orders count as equal down to this factor.
constexpr double kNearlyAll = 1 - 1e-12;

/// Whether two sets have links of a common dimension. Copies of a group use links of the same dimensions as the group.
bool share_dimensions(const Fabric& fabric, const LinkSet& one, const LinkSet& other) {
  std::vector<char> used(fabric.spec().dimensions.size(), 0);
  const auto dimension = [&](std::int32_t link) {
    return static_cast<std::size_t>(fabric.links()[static_cast<std::size_t>(link)].dimension);
  };
  bool common = false;
  one.for_each([&](std::int32_t link) { used[dimension(link)] = 1; });
  other.for_each([&](std::int32_t link) { common = common || used[dimension(link)] != 0; });
  return common;
}

/// Lists each distinct load once per dimension, with the number of the dimension in place of the link.
LinkLoads by_dimension(const Fabric& fabric, const LinkLoads& loads) {
  LinkLoads different;
  for (LinkLoad load : loads) {
    std::int32_t link = load.link;
    const std::int32_t end = load.end();
    load.links = 1;
    for (; link < end; link = fabric.end_of_dimension(link)) {
      load.link = fabric.links()[static_cast<std::size_t>(link)].dimension;
      if (!different.empty() && different.back() == load) continue;  // most are like the one before
      if (std::ranges::find(different, load) == different.end()) different.push_back(load);
    }
  }
  return different;
}

}  // namespace

HealthyCosts::Asked HealthyCosts::asked(const CollectiveKey& key) const {
  OperationCosts& costs = operation(key.op, key.group);
  return {costs, costs.ways[choose(costs, costs.sent_by(key)).way]};
}

std::uint32_t HealthyCosts::way_number(const CollectiveKey& key) const { return asked(key).way.number; }

/// Found when first asked for, since curves know only the links of the groups that were looked at.
const LinkSet& HealthyCosts::links_of(const OperationCosts& costs, KnownWay& way) const {
  if (!way.all_links)
    way.all_links = network::links_of(*maker_, costs.op, way, siblings(costs), setup_.fabric);
  return *way.all_links;
}

const LinkSet& HealthyCosts::links(const CollectiveKey& key) const {
  const Asked one = asked(key);
  return links_of(one.costs, one.way);
}

std::vector<LinkSet> HealthyCosts::links_by_slice(const OperationCosts& costs, const Way& way,
                                                  const RankGroup::Level& axis) const {
  std::vector<LinkSet> links;
  for (std::int32_t i = 0; i < axis.extent; ++i)
    links.push_back(network::links_of(*maker_, costs.op, way, siblings(costs, {axis, i}), setup_.fabric));
  return links;
}

const std::vector<LinkSet>& HealthyCosts::links_by_slice(const CollectiveKey& key) const {
  const Asked one = asked(key);
  return one.way.links_by_slice.get(key.slice.axis,
                                    [&] { return links_by_slice(one.costs, one.way, key.slice.axis); });
}

bool HealthyCosts::meet(const CollectiveKey& one, const CollectiveKey& other) const {
  if (!plain()) return meet(asked(one), asked(other));
  const LinkSet of_one = links(one);  // a copy: the next question overwrites it
  return of_one.intersects(links(other));
}

bool HealthyCosts::meet(OperationCosts& boundary, const CollectiveKey& other) const {
  return meet(Asked{boundary, boundary.ways.front()}, asked(other));
}

bool HealthyCosts::meet(const Asked& one, const Asked& other) const {
  const auto all_meet = [&] {
    return links_of(one.costs, one.way).intersects(links_of(other.costs, other.way));
  };
  if (!knows_tiles()) return all_meet();
  return meetings_.get({one.way.number, other.way.number}, [&] {
    // Curves of boundaries list no links.
    const auto looked_at = [&](const Asked& of) -> const LinkSet& {
      return of.costs.boundary < 0 ? of.way.curve.links() : links_of(of.costs, of.way);
    };
    const LinkSet &first = looked_at(one), &second = looked_at(other);
    return first.intersects(second) || (share_dimensions(setup_.fabric, first, second) && all_meet());
  });
}

const LinkLoads& HealthyCosts::loads(const CollectiveKey& key, Looked looked) const {
  return loads_of(asked(key), looked);
}

double HealthyCosts::most_use(const CollectiveKey& key) const {
  double most = 0;
  for (const LinkLoad& load : loads(key, knows_tiles() ? Looked::tile : Looked::all))
    most = std::max(most, load.use);
  return std::min(1.0, most);
}

const LinkLoads& HealthyCosts::loads_of(const Asked& asked, Looked looked) const {
  std::optional<LinkLoads>& loads = asked.way.loads[static_cast<std::size_t>(looked)];
  if (loads) return *loads;
  if (looked == Looked::dimensions) {
    loads = by_dimension(setup_.fabric, loads_of(asked, Looked::tile));
  } else {
    const SiblingGroups groups = looked == Looked::all ? siblings(asked.costs) : tile(asked.costs);
    loads = network::loads_of(*maker_, asked.costs.op, asked.way, groups, setup_.fabric);
  }
  return *loads;
}

KeptPaces HealthyCosts::paces_from_tile(const Asked& one, const Asked& other) const {
  if (!meet(one, other)) return {};
  const KeptPaces paces = kept_paces(loads_of(one, Looked::tile), loads_of(other, Looked::tile));
  // Elsewhere they meet on links of the same dimensions, at worst at these paces; if the tile is as slow, it decides.
  const bool decides =
      paces == least_paces(loads_of(one, Looked::dimensions), loads_of(other, Looked::dimensions));
  return decides ? paces : kept_paces(loads_of(one, Looked::all), loads_of(other, Looked::all));
}

KeptPaces HealthyCosts::shared_paces(const Asked& one, const Asked& other) const {
  const std::optional<CurveKey> first = shared_key(one.costs, one.way, {}),
                                second = shared_key(other.costs, other.way, {});
  if (!first || !second) return paces_from_tile(one, other);
  if (const auto known = setup_.curves->find(*first, *second)) return *known;
  const KeptPaces paces = paces_from_tile(one, other);
  setup_.curves->keep(*first, *second, paces);
  return paces;
}

KeptPaces HealthyCosts::paces_together(const CollectiveKey& one, const CollectiveKey& other) const {
  if (!knows_tiles()) {
    const LinkLoads first = loads(one);  // a copy: on the plain path, the next question overwrites it
    return kept_paces(first, loads(other));
  }
  return paces_together(asked(one), asked(other));
}
KeptPaces HealthyCosts::paces_together(const CollectiveKey& call, OperationCosts& boundary) const {
  if (!knows_tiles()) {
    const LinkLoads first = loads(call);  // a copy, as above
    return kept_paces(first, loads(boundary));
  }
  return paces_together(asked(call), {boundary, boundary.ways.front()});
}
KeptPaces HealthyCosts::paces_together(const Asked& one, const Asked& other) const {
  return paces_.get({one.way.number, other.way.number}, [&] { return shared_paces(one, other); });
}

/// Uses per dimension, as if in each dimension the largest uses of all operations fell on one link.
LinkUses HealthyCosts::uses_by_dimension(std::span<const CollectiveKey> operations) const {
  std::vector<LinkLoads> most;
  std::vector<const LinkLoads*> each;
  for (const CollectiveKey& key : operations)
    most.push_back(heaviest_by_link(loads(key, Looked::dimensions)));
  for (const LinkLoads& of : most) each.push_back(&of);
  return LinkUses(each);
}

LinkUses HealthyCosts::uses_of_all(std::span<const CollectiveKey> operations) const {
  std::vector<LinkLoads> all;  // copies: on the plain path, the next question overwrites them
  std::vector<const LinkLoads*> each;
  for (const CollectiveKey& key : operations) all.push_back(loads(key));
  for (const LinkLoads& of : all) each.push_back(&of);
  return LinkUses(each);
}

Seconds HealthyCosts::busiest_link(std::span<const CollectiveKey> operations,
                                   std::span<const Seconds> sending, Seconds beyond) const {
  const auto longer = [&](Seconds busy) { return busy > beyond ? busy : Seconds(0); };
  if (!knows_tiles()) return longer(uses_of_all(operations).busiest(sending));
  all_.numbers.clear();
  for (const CollectiveKey& key : operations) all_.numbers.push_back(way_number(key));
  Uses& uses = uses_.get(all_, [&] { return Uses{uses_by_dimension(operations), {}, {}}; });
  // No link is busier than its dimension would be as one link; if a link of the tile is as busy, it is the busiest of
  // all.
  const Seconds most = uses.by_dimension.busiest(sending);
  if (most <= beyond) return Seconds(0);
  if (!uses.of_tile) {
    std::vector<const LinkLoads*> each;
    for (const CollectiveKey& key : operations) each.push_back(&loads(key, Looked::tile));
    uses.of_tile.emplace(each);
  }
  const Seconds least = uses.of_tile->busiest(sending);
  if (least >= kNearlyAll * most) return longer(least);
  if (!uses.of_all) uses.of_all = uses_of_all(operations);
  return longer(uses.of_all->busiest(sending));
}

}  // namespace shardscape::network
