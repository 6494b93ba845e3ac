// Sorts the members of a group by the domains that they lie in, orders domains by the leaves of the network above
// them, and deals each ring a seat of every domain to enter it by, as many rings as the smallest domain has members.
#include "engine/network/groups/channel_rings.h"

#include <algorithm>
#include <compare>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

struct Member {
  std::int64_t domain = 0, seat = 0;
  std::int32_t rank = 0;
  friend auto operator<=>(const Member&, const Member&) = default;
};

/// A domain and its members, in ascending order of seats.
struct Domain {
  std::int64_t number = 0;
  std::span<const Member> members;

  [[nodiscard]] bool has(std::int64_t seat) const {
    return std::ranges::binary_search(members, seat, {}, &Member::seat);
  }
};

bool leaves_domains(const Fabric& fabric, const Fabric::Axis& axis) {
  const auto dimension = static_cast<std::size_t>(axis.dimension);
  return fabric.spec().dimensions[dimension].scope == LinkScope::scale_out;
}

/// The members of a group, domain by domain.
std::vector<Member> members_of(const Fabric& fabric, std::span<const std::int32_t> group) {
  const std::vector<std::int64_t> domains = places_of(fabric, group, LinkScope::scale_out);
  const std::vector<std::int64_t> seats = places_of(fabric, group, LinkScope::scale_up);
  std::vector<Member> members(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) members[i] = {domains[i], seats[i], group[i]};
  if (!std::ranges::is_sorted(members)) std::ranges::sort(members);
  return members;
}

/// The domains of these members, in ascending order of their numbers.
std::vector<Domain> domains_with(std::span<const Member> members) {
  std::vector<Domain> domains;
  for (std::size_t i = 0, end = 0; i < members.size(); i = end) {
    while (end < members.size() && members[end].domain == members[i].domain) ++end;
    domains.push_back({members[i].domain, members.subspan(i, end - i)});
  }
  return domains;
}

/// Puts domains in leaf_order(). Only if one axis alone leaves domains, since their numbers are then its coordinates.
void by_leaves(const Fabric& fabric, std::vector<Domain>& domains) {
  const auto leaves = [&](const Fabric::Axis& axis) { return leaves_domains(fabric, axis); };
  if (std::ranges::count_if(fabric.axes(), leaves) != 1) return;
  std::vector<std::int32_t> numbers;
  for (const Domain& domain : domains) numbers.push_back(static_cast<std::int32_t>(domain.number));
  leaf_order(fabric, std::ranges::find_if(fabric.axes(), leaves)->dimension, numbers);
  std::vector<Domain> ordered;
  for (const std::int32_t number : numbers)
    ordered.push_back(*std::ranges::lower_bound(domains, number, {}, &Domain::number));
  domains = std::move(ordered);
}

/// Reorders domains so that no two that have fewer than the most members are neighbours, if there are enough others.
void part_small_ones(std::vector<Domain>& domains) {
  std::size_t most = 0;
  for (const Domain& domain : domains) most = std::max(most, domain.members.size());
  const auto is_small = [&](const Domain& domain) { return domain.members.size() < most; };
  if (std::ranges::count_if(domains, is_small) < 2) return;
  std::vector<Domain> small, full, parted;
  for (const Domain& domain : domains) (is_small(domain) ? small : full).push_back(domain);
  for (std::size_t i = 0; i < std::max(small.size(), full.size()); ++i) {
    if (i < small.size()) parted.push_back(small[i]);
    if (i < full.size()) parted.push_back(full[i]);
  }
  domains = std::move(parted);
}

/// Lists the seats by which rings go from one domain to the next; those that have members in both domains come first.
void list_gateways(const Domain& from, const Domain& to, std::size_t channels,
                   std::vector<std::int64_t>& seats) {
  seats.clear();
  for (const bool in_both : {true, false}) {
    for (const Member& member : to.members)
      if (seats.size() < channels && from.has(member.seat) == in_both) seats.push_back(member.seat);
  }
}

}  // namespace

std::int32_t under_leaf(const Fabric& fabric, std::int32_t dimension) {
  for (const Fabric::Axis& axis : fabric.axes()) {
    if (axis.dimension != dimension || axis.kind != DimensionKind::fat_tree) continue;
    const FatTreeSpec& tree = fabric.spec().dimensions[static_cast<std::size_t>(dimension)].fat_tree;
    const std::int32_t ports = static_cast<std::int32_t>(tree.leaf_ports_down().value()) * axis.sharing;
    return ports % axis.lanes == 0 ? ports / axis.lanes : 0;
  }
  return 0;
}

void leaf_order(const Fabric& fabric, std::int32_t dimension, std::vector<std::int32_t>& coordinates) {
  const std::int32_t span = under_leaf(fabric, dimension);
  if (span < 2 || coordinates.empty()) return;
  const std::int32_t place = coordinates.front() % span;
  auto leaf = coordinates.begin();
  while (leaf != coordinates.end()) {
    const std::int32_t end = *leaf / span * span + span;
    const auto next = std::lower_bound(leaf, coordinates.end(), end);
    const auto first = std::lower_bound(leaf, next, end - span + place);
    std::rotate(leaf, first == next ? leaf : first, next);
    leaf = next;
  }
}

std::int32_t most_channels(const Fabric& fabric, std::span<const std::int32_t> group) {
  const std::vector<Member> members = members_of(fabric, group);
  const std::vector<Domain> domains = domains_with(members);
  if (domains.size() < 2) return 0;
  std::size_t least = kMostChannels;
  for (const Domain& domain : domains) least = std::min(least, domain.members.size());
  return static_cast<std::int32_t>(least);
}

std::int32_t channels_of(const Fabric& fabric, const SiblingGroups& groups) {
  std::int32_t channels = kMostChannels;
  for (std::size_t g = 0; g < groups.shapes() && channels > 0; ++g)
    channels = std::min(channels, most_channels(fabric, groups.group(g)));
  const double hops = groups.copies * static_cast<double>(groups.ranks.size());
  return static_cast<std::int32_t>(std::min<double>(channels, std::max(1.0, kMostHops / hops)));
}

std::vector<std::vector<std::int32_t>> channel_rings(const Fabric& fabric,
                                                     std::span<const std::int32_t> group,
                                                     std::int32_t channels) {
  const std::vector<Member> all = members_of(fabric, group);
  std::vector<Domain> domains = domains_with(all);
  SHARDSCAPE_CHECK(domains.size() > 1 && channels >= 1, domains.size(), channels);
  by_leaves(fabric, domains);
  part_small_ones(domains);
  std::vector<std::vector<std::int32_t>> rings(static_cast<std::size_t>(channels));
  for (std::vector<std::int32_t>& ring : rings) ring.reserve(group.size());
  std::vector<std::int64_t> seats;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const std::span<const Member> members = domains[d].members;
    SHARDSCAPE_CHECK(rings.size() <= members.size(), channels, members.size());
    list_gateways(domains[d == 0 ? domains.size() - 1 : d - 1], domains[d], rings.size(), seats);
    for (std::size_t c = 0; c < rings.size(); ++c) {
      const auto entry = std::ranges::find(members, seats[c], &Member::seat);
      for (auto member = entry; member != members.end(); ++member) rings[c].push_back(member->rank);
      for (auto member = members.begin(); member != entry; ++member) rings[c].push_back(member->rank);
    }
  }
  return rings;
}

}  // namespace shardscape::network
