// Groups that leave a domain: no cliffs where they don't tile domains evenly, and what is priced is what is sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/execution/program.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/simulate.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"
#include "tests/support/seeds.h"

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

/// The data-parallel groups of a plan, `tensor` ranks apart, that leave a domain.
std::vector<std::vector<std::int32_t>> groups_across(const ParallelPlan& plan, std::int64_t domain) {
  std::vector<std::vector<std::int32_t>> groups;
  for (std::int32_t first = 0; first < plan.gpus(); first += plan.tensor * plan.data) {
    for (std::int32_t t = 0; t < plan.tensor; ++t) {
      if (members_by_domain(first + t, plan.tensor, plan.data, domain).size() < 2) continue;
      std::vector<std::int32_t>& group = groups.emplace_back();
      for (std::int32_t i = 0; i < plan.data; ++i) group.push_back(first + t + plan.tensor * i);
    }
  }
  return groups;
}

/// The most rings that go over one adapter the same way. A message goes to the seat of its receiver in its own domain
/// first, and leaves through the adapter there.
int users_of_an_adapter(const std::vector<std::vector<std::int32_t>>& rings, std::int64_t domain) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> out, in;
  int most = 0;
  for (const std::vector<std::int32_t>& ring : rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::int64_t from = ring[i] / domain, next = ring[i + 1 == ring.size() ? 0 : i + 1];
      if (from == next / domain) continue;
      most = std::max({most, ++out[{from, next % domain}], ++in[{next / domain, next % domain}]});
    }
  }
  return most;
}

/// What the rings of all groups of a plan have of the adapters of a domain.
struct Adapters {
  double each = 0;  ///< of a group, at worst: less than 1 where groups share one; 0: no group leaves a domain
  bool shared = false;  ///< whether it is
};
/// The better of one ring in the order of the ranks and of as many as the fewest members that a group has in a domain.
Adapters adapters_of(const Fabric& fabric, const ParallelPlan& plan, std::int64_t domain) {
  const std::vector<std::vector<std::int32_t>> groups = groups_across(plan, domain);
  if (groups.empty()) return {};
  std::int32_t channels = kMostChannels;
  for (const std::vector<std::int32_t>& group : groups)
    channels = std::min(channels, most_channels(fabric, group));
  std::vector<std::vector<std::int32_t>> rings;
  for (const std::vector<std::int32_t>& group : groups)
    for (std::vector<std::int32_t>& ring : channel_rings(fabric, group, channels))
      rings.push_back(std::move(ring));
  const double one = 1.0 / users_of_an_adapter(groups, domain);
  const double several = 1.0 * channels / users_of_an_adapter(rings, domain);
  return {std::max(one, several), std::max(one, several / channels) < 1};
}

/// What reducing 4 GB in the data-parallel groups of a plan takes, all at once, and over which adapters.
struct PricedPlan {
  double seconds = 0;
  Adapters adapters;
};
/// Nothing where the cluster is not made for so many ranks, or no group leaves a domain.
std::optional<PricedPlan> price_of(const yaml::Cluster& cluster,
                                   const StackProfile::Communication& communication, const ParallelPlan& plan,
                                   std::int64_t domain) {
  Problems problems;
  const FabricSpec spec = cluster.fabric.instantiate(plan.gpus(), problems);
  if (!problems.empty()) return std::nullopt;
  const Fabric fabric(spec);
  const CollectivePrices model({fabric, communication, BytesPerSecond(2e12)});
  const RankGroup group = PlanLayout(plan).group(ParallelGroup::data_shard);
  const PricedPlan priced{model.time({CollectiveOp::reduce_scatter, Bytes(4e9), group}).value(),
                          adapters_of(fabric, plan, domain)};
  return priced.adapters.each > 0 ? std::optional(priced) : std::nullopt;
}

// Every member of a ring sends B (n - 1) / n, over as many adapters of a domain as rings enter it. So where the fewest
// members in a domain fall from m to m', everything that leaves that domain passes m' adapters, and the price may rise
// as m / m'. Where a domain holds ranks of two stages, groups of both may leave it over one adapter, which costs half
// of it: rails don't meet, so that a member whose successor sits at another place leaves by the adapter of that place,
// which may be the other stage's. All else is within 15 %: trees with as many ports up as down carry what their
// adapters do, however many leaves a group spans.
TEST(ChannelRings, OneReplicaMoreChangesThePriceByNoMoreThanTheAdaptersThatItCosts) {
  constexpr std::int32_t kMostRanks = 5000;
  const StackProfile::Communication communication = communication_of("megatron-core");
  int compared = 0, shared = 0;
  for (const yaml::Cluster& cluster : clusters_of_several_domains()) {
    Problems ignored;
    const std::int64_t domain = domain_size(cluster.fabric.instantiate(4608, ignored));
    if (!ignored.empty() || domain < 2) continue;
    for (const std::int32_t stride : {1, 2, 4, 8, 16, 32, 64}) {
      std::optional<PricedPlan> before;
      for (std::int32_t n = 9; n <= test::size_of_case(140, 20); ++n) {
        ParallelPlan plan;
        plan.tensor = stride;
        plan.data = n;
        plan.pipeline = static_cast<std::int32_t>(domain / std::gcd(domain, std::int64_t{stride} * n));
        const std::optional<PricedPlan> now =
            plan.gpus() > kMostRanks ? std::nullopt : price_of(cluster, communication, plan, domain);
        SCOPED_TRACE(cluster.name + ", stride " + std::to_string(stride) + ", " + std::to_string(n) +
                     " replicas after one fewer");
        if (now && now->adapters.shared) {
          EXPECT_NE(stride * n % domain, 0) << "stages have domains of their own";
          ++shared;
        }
        if (now && before) {
          const double ratio = now->seconds / before->seconds;
          const double fewer = before->adapters.each / now->adapters.each;
          EXPECT_LE(ratio, 1.15 * std::max(1.0, fewer));
          EXPECT_GE(ratio, 0.85 * std::min(1.0, fewer));
          ++compared;
        }
        before = now;
      }
    }
  }
  EXPECT_GT(compared, test::at_least(3000));
  EXPECT_GT(shared, 0);
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

/// What programs send in a call, message by message.
struct Sent {
  double bytes = 0;                           ///< sent by the whole group
  std::map<std::int64_t, double> into_seats;  ///< bytes from other domains, by the rank that receives them
};

Sent sent_in(const execution::Programs& programs, const execution::CallTraffic& call, std::int64_t domain) {
  Sent sent;
  for (const execution::CallTraffic::Gate& gate : call.gates) {
    for (std::int32_t m = 0; m < gate.messages; ++m) {
      const Message& message = call.messages[static_cast<std::size_t>(gate.first_message + m)];
      const Connection& way = programs.wires.connections[static_cast<std::size_t>(message.connection)];
      sent.bytes += gate.times * message.bytes;
      if (way.source / domain != way.destination / domain)
        sent.into_seats[way.destination] += gate.times * message.bytes;
    }
  }
  return sent;
}

/// Replicas of two ranks on a cluster, in as many stages as fill domains; nothing where it is not made for them.
struct Irregular {
  Setting setting;
  ParallelPlan plan;
  std::int64_t domain = 1;
};
std::optional<Irregular> irregular_case(const yaml::Cluster& cluster, std::int32_t replicas) {
  Problems problems;
  Irregular c;
  c.domain = domain_size(cluster.fabric.instantiate(4608, problems));
  if (!problems.empty() || c.domain < 2) return std::nullopt;
  const std::int64_t stages = c.domain / std::gcd(c.domain, std::int64_t{2} * replicas);
  c.plan = test::plan_of(2, 1, static_cast<std::int32_t>(stages), replicas);
  c.plan.zero_stage = 1;
  c.setting.system.fabric = cluster.fabric.instantiate(c.plan.gpus(), problems);
  if (!problems.empty()) return std::nullopt;
  c.setting.model = test::llama(stages, 1024, 16, 8, 4096, 32000);
  c.setting.system.device = cluster.device;
  c.setting.system.stack = test::plain_stack();
  c.setting.system.stack.communication = communication_of("megatron-core");
  c.setting.workload = test::training(512, replicas);
  return c;
}

/// Of the first communicator of data groups: what a member sends in a step, and the rings that it takes at most.
struct Executed {
  double bytes = 0, rings = 1;
};

Executed executed_by(const Irregular& c, const execution::Programs& programs, std::int32_t rank) {
  Executed result;
  const double n = c.plan.data;
  const std::int32_t sequence = programs.sequence_of[static_cast<std::size_t>(rank)];
  for (const std::int32_t block : programs.sequences[static_cast<std::size_t>(sequence)]) {
    const auto [begin, end] = programs.blocks[static_cast<std::size_t>(block)];
    for (std::int32_t i = begin; i < end; ++i) {
      const execution::Instruction& start = programs.instructions[static_cast<std::size_t>(i)];
      if (start.kind != execution::Instruction::Kind::start) continue;
      const std::int32_t which = programs.communicator_of[programs.at(start.lane, rank)];
      const execution::Communicator& all = programs.communicators[static_cast<std::size_t>(which)];
      if (all.ranks.size() != static_cast<std::size_t>(c.plan.data)) continue;
      const auto call = static_cast<std::size_t>(start.what);
      const Sent sent = sent_in(programs, all.calls[call], c.domain);
      result.bytes += start.repeats * sent.bytes / n;
      // Every ring enters a domain over a seat of its own, with an equal part of what a rank sends.
      const double hop = programs.call_kinds[start.lane][call].bytes * (n - 1) / n;
      EXPECT_NEAR(sent.bytes / (n * hop), 1, 1e-9);
      for (const auto& [seat, bytes] : sent.into_seats) {
        result.rings = std::max(result.rings, std::round(hop / bytes));
        EXPECT_NEAR(result.rings * bytes / hop, 1, 1e-9);
      }
    }
  }
  return result;
}

// A ring of k sends B (n - 1) / n / k over each of its hops, and so into every domain: that is what the price is of,
// reported as bytes of the group, and what is executed, message by message.
TEST(ChannelRings, WhatIsExecutedIsWhatIsPriced) {
  int over_several = 0;
  for (const yaml::Cluster& cluster : clusters_of_several_domains()) {
    for (const std::int32_t replicas : {6, 10, 54}) {
      const std::optional<Irregular> c = irregular_case(cluster, replicas);
      if (!c) continue;
      SCOPED_TRACE(cluster.name + ", " + test::describe(0, c->plan));
      Details executed, priced;
      executed.want_programs = true;
      const SimulateOptions execute{.time_infeasible = true, .mode = ExecutionMode::flattened};
      const Prediction out = Simulator(c->setting, execute).run(c->plan, {}, &executed);
      if (out.reason == Reason::precision) continue;  // the device does not support bf16
      ASSERT_EQ(out.status, Status::ok) << name_of(out.reason);
      Simulator(c->setting, {.time_infeasible = true}).run(c->plan, {}, &priced);
      double most = 0;
      for (std::int32_t rank = 0; rank < c->plan.gpus(); rank += c->plan.tensor * c->plan.data) {
        const Executed of_rank = executed_by(*c, *executed.programs, rank);
        most = std::max(most, of_rank.bytes);
        const auto members = members_by_domain(rank, c->plan.tensor, replicas, c->domain);
        const auto [least, largest] = std::ranges::minmax(members);
        if (least != largest && of_rank.rings > 1) ++over_several;
        EXPECT_LE(of_rank.rings, static_cast<double>(least));
      }
      EXPECT_NEAR(most / priced.group_bytes[ParallelGroup::data_shard].value(), 1, 1e-9);
    }
  }
  EXPECT_GT(over_several, 0);
}

}  // namespace
}  // namespace shardscape::network
