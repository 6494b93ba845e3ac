#include "engine/network/prices/least_time.h"

#include <vector>

#include "engine/spec/collective_tolerance.h"

namespace shardscape::network {

namespace {

/// Shares of a price that are left as a floor where ranks do not begin together. Chosen by experiment, not proved: with
/// all of the price, floors of 2 of 9,000 random plans of the shipped stacks and clusters lay above their executed
/// steps, by 3.8 % at most, both on direct links, which groups share with others that need not send at the same time. A
/// rank that comes late may also find the fast hops of its rings idle, where groups have several members in each of
/// several domains; no case is left since only the groups of one stage are priced, and a tenth is taken off for it.
/// With these shares no floor of 10,500 plans lay above the executed step (tests/property/executed_floor_test.cc draws
/// them).
constexpr double kLeftOfMixed = 0.9, kLeftOfDirect = 0.8;

}  // namespace

double least_share_of_price(const Fabric& fabric, const RankGroup& group) {
  std::vector<std::int32_t> ranks = {0};
  for (std::int32_t level = 0; level < group.depth; ++level) {
    const RankGroup::Level& along = group.levels[static_cast<std::size_t>(level)];
    const std::size_t inner = ranks.size();
    for (std::int32_t i = 1; i < along.extent; ++i)
      for (std::size_t r = 0; r < inner; ++r) ranks.push_back(ranks[r] + i * along.stride);
  }
  std::vector<std::int64_t> domains = places_of(fabric, ranks, LinkScope::scale_out);
  std::ranges::sort(domains);
  domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
  if (domains.size() > 1 && domains.size() < ranks.size()) return kLeftOfMixed;
  const auto direct = [](const DimensionSpec& dimension) {
    return dimension.kind != DimensionKind::switched && dimension.kind != DimensionKind::fat_tree;
  };
  return std::ranges::any_of(fabric.spec().dimensions, direct) ? kLeftOfDirect : 1;
}

Seconds time_of_one_slice(const CollectivePrices& collectives, const CollectiveKey& asked,
                          const std::optional<RankGroup::Level>& axis) {
  const Seconds all = collectives.time(asked);
  if (all <= Seconds(0) || !axis) return all;
  CollectiveKey within = asked;
  within.slice.axis = *axis;
  return std::min(all, collectives.time_within_slice(within).least);
}

Seconds least_time(const CollectivePrices& collectives, const Fabric& fabric, const CollectiveKey& asked,
                   const std::optional<RankGroup::Level>& stages) {
  const Seconds price = time_of_one_slice(collectives, asked, stages);
  if (price <= Seconds(0)) return {};
  return (1 - kCollectiveTolerance) * least_share_of_price(fabric, asked.group) * price;
}

LeastOfRow least_of_row(const CollectivePrices& collectives, const Fabric& fabric, const CollectiveKey& asked,
                        const std::optional<RankGroup::Level>& stages) {
  const Seconds one = least_time(collectives, fabric, asked, stages);
  if (one <= Seconds(0)) return {};
  // At most so many reads and writes per byte (network README, Collectives).
  constexpr double kMostCopied = 6;
  const CollectiveSetup& setup = collectives.healthy().setup();
  Seconds copies;
  if (setup.communication.local_copy > 0)
    copies = kMostCopied * setup.communication.local_copy * asked.bytes / setup.memory_rate;
  CollectiveKey doubled = asked;
  doubled.bytes *= 2.0;
  return {one, std::clamp(least_time(collectives, fabric, doubled, stages) - one - copies, Seconds(0), one)};
}

}  // namespace shardscape::network
