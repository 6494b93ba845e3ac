// Groups that leave a domain: no cliffs where they don't tile domains evenly, and what is priced is what is sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/network/channel_rings.h"
#include "engine/network/collective_model.h"
#include "sweep/yaml/load.h"
#include "tests/support/paths.h"

namespace shardscape::network {
namespace {

std::vector<yaml::Cluster> clusters_of_several_domains() {
  const yaml::Catalog catalog({test::source_dir()});
  std::vector<yaml::Cluster> list;
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::cluster)) {
    const auto cluster = yaml::load_cluster(catalog, entry.name);
    EXPECT_TRUE(cluster.has_value()) << entry.name;
    if (cluster && cluster->fabric.open()) list.push_back(*cluster);
  }
  return list;
}

StackProfile::Communication communication_of(const char* name) {
  const auto stack = yaml::load_stack(yaml::Catalog({test::source_dir()}), name);
  EXPECT_TRUE(stack.has_value());
  return stack->communication;
}

/// Ranks that scale-up links reach.
std::int64_t domain_size(const FabricSpec& fabric) {
  std::int64_t size = 1;
  for (const DimensionSpec& dimension : fabric.dimensions)
    if (dimension.scope == LinkScope::scale_up) size *= dimension.size();
  return size;
}

/// Members of a group in each domain that has any: n ranks, `stride` apart, from `first` on.
std::vector<std::int64_t> members_by_domain(std::int64_t first, std::int64_t stride, std::int64_t n,
                                            std::int64_t domain) {
  std::map<std::int64_t, std::int64_t> members;
  for (std::int64_t i = 0; i < n; ++i) ++members[(first + stride * i) / domain];
  std::vector<std::int64_t> list;
  for (const auto& [number, count] : members) list.push_back(count);
  return list;
}

/// Of all groups of a plan, the fewest members that one has in a domain, where it leaves one; 0 where none does.
std::int64_t fewest_members(const ParallelPlan& plan, std::int64_t domain) {
  std::int64_t fewest = 0;
  for (std::int64_t first = 0; first < plan.gpus(); first += plan.tensor * plan.data) {
    for (std::int64_t t = 0; t < plan.tensor; ++t) {
      const std::vector<std::int64_t> members = members_by_domain(first + t, plan.tensor, plan.data, domain);
      const std::int64_t least = members.size() > 1 ? *std::ranges::min_element(members) : 0;
      if (least > 0 && (fewest == 0 || least < fewest)) fewest = least;
    }
  }
  return fewest;
}

/// The price of reducing 4 GB in the data-parallel groups of a plan, all at once; nothing where the cluster is not made
/// for so many ranks.
std::optional<double> price_of(const yaml::Cluster& cluster, const StackProfile::Communication& communication,
                               const ParallelPlan& plan) {
  Problems problems;
  const FabricSpec spec = cluster.fabric.instantiate(plan.gpus(), problems);
  if (!problems.empty()) return std::nullopt;
  const Fabric fabric(spec);
  CollectiveModel model(fabric, communication, BytesPerSecond(2e12));
  const RankGroup group = PlanLayout(plan).group(ParallelGroup::data_shard);
  return model.time(CollectiveOp::reduce_scatter, Bytes(4e9), group).value();
}

// Every member of a ring sends B (n - 1) / n, over as many adapters of a domain as rings enter it. So where the fewest
// members in a domain fall from m to m', everything that leaves that domain passes m' adapters, and the price may rise
// as m / m'. All else is within 15 %.
TEST(ChannelRings, OneReplicaMoreChangesThePriceByNoMoreThanTheAdaptersThatItCosts) {
  const StackProfile::Communication communication = communication_of("megatron-core");
  int compared = 0;
  for (const yaml::Cluster& cluster : clusters_of_several_domains()) {
    Problems ignored;
    const std::int64_t domain = domain_size(cluster.fabric.instantiate(4608, ignored));
    if (!ignored.empty() || domain < 2) continue;
    for (const std::int32_t stride : {1, 2, 8}) {
      std::optional<double> before;
      double adapters_before = 0;
      for (std::int32_t n = 30; n <= 42; ++n) {
        ParallelPlan plan;
        plan.tensor = stride;
        plan.data = n;
        plan.pipeline = static_cast<std::int32_t>(domain / std::gcd(domain, std::int64_t{stride} * n));
        const std::optional<double> price = price_of(cluster, communication, plan);
        const auto adapters = static_cast<double>(fewest_members(plan, domain));
        if (price && before && adapters > 0 && adapters_before > 0) {
          SCOPED_TRACE(cluster.name + ", stride " + std::to_string(stride) + ", " + std::to_string(n) +
                       " replicas after one fewer");
          EXPECT_LE(*price / *before, 1.15 * std::max(1.0, adapters_before / adapters));
          EXPECT_GE(*price / *before, 0.85 / std::max(1.0, adapters / adapters_before));
          ++compared;
        }
        before = price;
        adapters_before = adapters;
      }
    }
  }
  EXPECT_GT(compared, 50);
}

TEST(ChannelRings, EveryRingGoesThroughAllMembersAndEntersADomainByASeatOfItsOwn) {
  for (const yaml::Cluster& cluster : clusters_of_several_domains()) {
    Problems problems;
    const FabricSpec spec = cluster.fabric.instantiate(288, problems);
    if (!problems.empty()) continue;
    const Fabric fabric(spec);
    const auto domain = static_cast<std::int32_t>(domain_size(spec));
    for (const std::int32_t stride : {1, 2, 4, 6}) {
      for (const std::int32_t n : {10, 24, 37, 48}) {
        if (stride * (n - 1) >= 288 || stride * (n - 1) < domain) continue;
        std::vector<std::int32_t> group;
        for (std::int32_t i = 0; i < n; ++i) group.push_back(stride * i);
        const std::int32_t channels = most_channels(fabric, group);
        const std::vector<std::int64_t> members = members_by_domain(0, stride, n, domain);
        EXPECT_EQ(channels, std::min<std::int64_t>(kMostChannels, *std::ranges::min_element(members)));
        std::set<std::int32_t> entries;
        for (std::vector<std::int32_t> ring : channel_rings(fabric, group, channels)) {
          // Each domain in one piece, and another way in than any other ring.
          std::size_t changes = 0;
          for (std::size_t i = 0; i < ring.size(); ++i) {
            const std::int32_t before = ring[(i + ring.size() - 1) % ring.size()];
            if (before / domain == ring[i] / domain) continue;
            ++changes;
            EXPECT_TRUE(entries.insert(ring[i]).second) << cluster.name << ", rank " << ring[i];
          }
          EXPECT_EQ(changes, members.size());
          std::ranges::sort(ring);
          EXPECT_EQ(ring, group);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::network
