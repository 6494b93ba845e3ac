// Groups that leave a domain: no cliffs where they don't tile domains evenly, and what is priced is what is sent.
#include <gtest/gtest.h>

#include <algorithm>
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

/// Members of the group of rank 0 in each domain that has any.
std::vector<std::int64_t> members_by_domain(std::int64_t stride, std::int64_t n, std::int64_t domain) {
  std::vector<std::int64_t> members(static_cast<std::size_t>((stride * (n - 1)) / domain + 1));
  for (std::int64_t i = 0; i < n; ++i) ++members[static_cast<std::size_t>(stride * i / domain)];
  std::erase(members, 0);
  return members;
}

// Every member of a ring sends B (n - 1) / n, over as many adapters of a domain as rings enter it. So where the fewest
// members in a domain fall from m to m', everything that leaves that domain passes m' adapters, and the price may rise
// as m / m'. All else is within 15 %.
TEST(ChannelRings, OneReplicaMoreChangesThePriceByNoMoreThanTheAdaptersThatItCosts) {
  const StackProfile::Communication communication = communication_of("megatron-core");
  int compared = 0, lost = 0;
  for (const yaml::Cluster& cluster : clusters_of_several_domains()) {
    for (const std::int64_t stride : {1, 2, 8}) {
      double before = 0;
      std::int64_t adapters_before = 0;
      for (std::int64_t n = 30; n <= 42; ++n) {
        const std::int64_t gpus = stride * n;
        Problems problems;
        std::int64_t whole = gpus;
        const std::int64_t domain = [&] {
          Problems ignored;
          const FabricSpec any = cluster.fabric.instantiate(4096, ignored);
          return ignored.empty() ? domain_size(any) : 0;
        }();
        if (domain < 2) break;
        whole = (gpus + domain - 1) / domain * domain;
        const FabricSpec spec = cluster.fabric.instantiate(whole, problems);
        if (!problems.empty() || whole <= domain) continue;
        const Fabric fabric(spec);
        CollectiveModel model(fabric, communication, BytesPerSecond(2e12));
        ParallelPlan plan;
        plan.tensor = static_cast<std::int32_t>(stride);
        plan.data = static_cast<std::int32_t>(n);
        const RankGroup group = PlanLayout(plan).group(ParallelGroup::data_shard);
        const double price = model.time(CollectiveOp::reduce_scatter, Bytes(4e9), group).value();
        const std::vector<std::int64_t> members = members_by_domain(stride, n, domain);
        const std::int64_t adapters = *std::ranges::min_element(members);
        ASSERT_GT(price, 0);
        if (before > 0) {
          const double fewer =
              std::max(1.0, static_cast<double>(adapters_before) / static_cast<double>(adapters));
          const double more =
              std::max(1.0, static_cast<double>(adapters) / static_cast<double>(adapters_before));
          EXPECT_LE(price / before, 1.15 * fewer)
              << cluster.name << ", stride " << stride << ", " << n - 1 << " to " << n << " replicas";
          EXPECT_GE(price / before, 0.85 / more)
              << cluster.name << ", stride " << stride << ", " << n - 1 << " to " << n << " replicas";
          ++compared;
          lost += adapters < adapters_before;
        }
        before = price;
        adapters_before = adapters;
      }
    }
  }
  EXPECT_GT(compared, 50);
  std::printf("%d pairs compared, in %d of them a domain has fewer adapters for the group\n", compared, lost);
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
        const std::vector<std::int64_t> members = members_by_domain(stride, n, domain);
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
