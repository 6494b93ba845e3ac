// Compact traffic against every message laid out: pairwise rounds taken turn by turn, and messages that fare alike
// folded into one, on random fabrics with rails and sick links. Times, link loads and counts are to be the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "engine/network/collectives/folded_sends.h"
#include "tests/support/fabrics.h"
#include "tests/support/naive_flow_simulator.h"
#include "tests/support/seeds.h"
#include "tests/support/traffic_fixture.h"

namespace shardscape::network {
namespace {

using test::collective;
using test::dimension;
using test::make_fabric;

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

/// `rails` of 0: one per adapter.
DimensionSpec tree_between_nodes(std::int64_t nodes, std::optional<std::int64_t> adapters,
                                 std::int64_t rails) {
  DimensionSpec tree = fat_tree_of("tree", nodes, 2, 4);
  tree.nics_per_node = adapters;
  if (rails > 0) tree.rails = rails;
  return tree;
}

Fabric fabric_for_traffic(std::mt19937_64& random) {
  const auto extent = [&](std::int64_t least, std::uint64_t more) {
    return least + static_cast<std::int64_t>(random() % more);
  };
  using K = DimensionKind;
  switch (random() % 8) {
    case 0:
      return make_fabric({dimension(K::torus, {extent(2, 4), extent(2, 4)})});
    case 1:
      return make_fabric({dimension(K::mesh, {extent(2, 3), extent(2, 3)})});
    case 2:
      return make_fabric({dimension(K::ring, {extent(3, 9)})});
    case 3:
      return make_fabric(
          {dimension(K::fully_connected, {extent(2, 3)}), dimension(K::switched, {extent(2, 4)})});
    case 4:
      return make_fabric({dimension(K::switched, {4}), tree_between_nodes(4, std::nullopt, 0)});
    case 5:
      return make_fabric({dimension(K::switched, {4}), tree_between_nodes(4, 2, 1)});
    case 6:
      return make_fabric({dimension(K::switched, {extent(2, 3)}), dimension(K::torus, {2, 3})});
    default:
      return make_fabric({dimension(K::hypercube, {8}), dimension(K::ring, {3})});
  }
}

std::vector<std::int32_t> ranks_for_traffic(std::mt19937_64& random, std::int32_t ranks) {
  std::vector<std::int32_t> group = test::ranks_up_to(ranks);
  if (random() % 2 == 0) return group;
  if (random() % 2 == 0) std::ranges::shuffle(group, random);
  group.resize(2 + random() % (group.size() - 1));
  return group;
}

/// Soft faults and, now and then, one dead link.
FaultSet faults_for_traffic(std::mt19937_64& random, const Fabric& fabric) {
  FaultSet faults;
  for (std::size_t f = 0; f < random() % 3; ++f) {
    LinkFault fault;
    fault.link = static_cast<std::int32_t>(random() % fabric.links().size());
    fault.derate = random() % 6 == 0 ? 1 : uniform(random, 0.1, 1);
    fault.removed = random() % 8 == 0;
    faults.links.push_back(fault);
  }
  return faults;
}

std::vector<Pattern> random_pairwise(std::mt19937_64& random, std::int32_t ranks) {
  std::vector<Pattern> patterns;
  for (std::size_t p = 0, count = 1 + random() % 3; p < count; ++p) {
    if (random() % 4 == 0) {
      patterns.emplace_back();
      patterns.back().operation = Operation::point_to_point;
      for (int send = 0; send < 3; ++send) {
        const auto from = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(ranks));
        patterns.back().sends.push_back(
            {from, (from + 1) % ranks, uniform(random, 1e3, 2e6), uniform(random, 0, 1e-4)});
      }
    } else {
      Pattern pattern = collective(Operation::all_to_all, Algorithm::pairwise,
                                   ranks_for_traffic(random, ranks), uniform(random, 1e3, 1e6));
      if (std::has_single_bit(pattern.groups[0].size()) && random() % 2 == 0)
        pattern.partners = PairwisePartners::exclusive_or;
      if (random() % 2 == 0) pattern.start = uniform(random, 0, 5e-5);
      patterns.push_back(std::move(pattern));
    }
    for (std::size_t earlier = 0; earlier < p; ++earlier) {
      if (random() % 2 == 0) patterns.back().after.push_back(static_cast<std::int32_t>(earlier));
    }
  }
  return patterns;
}

std::vector<Pattern> random_sends(std::mt19937_64& random, std::int32_t ranks) {
  constexpr std::array kOperations = {Operation::all_to_all, Operation::reduce_scatter,
                                      Operation::all_gather};
  std::vector<Pattern> patterns;
  for (std::size_t p = 0, count = 1 + random() % 3; p < count; ++p) {
    Pattern pattern = collective(kOperations[random() % kOperations.size()], Algorithm::direct,
                                 ranks_for_traffic(random, ranks), uniform(random, 1e3, 1e6));
    if (random() % 3 == 0) pattern.start = uniform(random, 0, 1e-4);
    if (pattern.operation == Operation::all_to_all && random() % 3 == 0) {
      const auto members = static_cast<double>(pattern.groups[0].size());
      pattern.skew.shares.assign(pattern.groups[0].size(), 0.5 / members);
      pattern.skew.shares.front() += 0.5;
      pattern.skew.of_sender = random() % 2 == 0;
    }
    patterns.push_back(std::move(pattern));
  }
  if (random() % 4 == 0) {
    patterns.emplace_back();
    patterns.back().operation = Operation::point_to_point;
    patterns.back().sends = {{0, 1, 1e5, 2e-5}, {1, 0, 1e5, 0}, {0, 1, 1e5, 2e-5}};
  }
  return patterns;
}

/// A fabric with some sick links, or none.
struct DrawnFabric {
  explicit DrawnFabric(std::mt19937_64& random) : fabric(fabric_for_traffic(random)), faulty(fabric) {
    faulty.set_faults(faults_for_traffic(random, fabric));
  }
  DrawnFabric(const DrawnFabric&) = delete;
  DrawnFabric& operator=(const DrawnFabric&) = delete;
  const Fabric fabric;
  FaultyFabric faulty;
};

/// When each connection's last message left.
struct Drains final : RateObserver {
  explicit Drains(const Traffic& traffic) : end(traffic.connections.size()) {}
  void rate_changed(double time, std::int32_t connection, double rate) override {
    if (rate <= 0) end[static_cast<std::size_t>(connection)] = time;
  }
  std::vector<double> end;  ///< seconds
};

TEST(CompactTraffic, RoundsTakeTheTimeOfRoundsInFull) {
  FlowSimulator simulator;
  std::int64_t messages = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(800); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    DrawnFabric drawn(random);
    const Fabric& fabric = drawn.fabric;
    FaultyFabric& faulty = drawn.faulty;
    const std::vector<Pattern> patterns = random_pairwise(random, fabric.ranks());
    ASSERT_TRUE(check_patterns(patterns, faulty).empty());
    const auto full = build_traffic(patterns, faulty, TrafficLayout::in_full);
    const auto compact = build_traffic(patterns, faulty, TrafficLayout::compact);
    ASSERT_EQ(compact.has_value(), full.has_value());
    if (!full) continue;
    ASSERT_EQ(compact->messages(), full->messages());
    EXPECT_TRUE(closed_gates(compact->traffic).empty());
    const FlowResult a = simulator.run_traffic(full->traffic, faulty.bytes_per_second());
    const FlowResult b = simulator.run_traffic(compact->traffic, faulty.bytes_per_second());
    ASSERT_EQ(a.received, full->traffic.sent());
    ASSERT_EQ(b.received, compact->traffic.sent());
    ASSERT_NEAR(b.completion_time, a.completion_time, 1e-9 * a.completion_time);
    if (seed % 4 == 0) {
      const FlowResult naive = simulate_naively(compact->traffic, faulty.bytes_per_second());
      ASSERT_EQ(naive.received, b.received);
      ASSERT_NEAR(naive.completion_time, a.completion_time, 1e-9 * a.completion_time);
    }
    messages += full->messages();
    kept += static_cast<std::int64_t>(compact->traffic.messages.size());
  }
  if (!test::all_seeds()) return;
  EXPECT_GT(messages, 20000);
  EXPECT_LT(kept, messages / 2);
}

/// Bytes that each link carries of what is laid out.
std::vector<double> loads_of(const Traffic& traffic, std::size_t links) {
  std::vector<double> bytes(links);
  for (const Message& message : traffic.messages) {
    for (const std::int32_t link :
         traffic.path(traffic.connections[static_cast<std::size_t>(message.connection)]))
      bytes[static_cast<std::size_t>(link)] += message.bytes;
  }
  return bytes;
}

// Every message that is laid out has a class that drains when it does: the multiset of drains is that of the classes,
// each as often as it stands for messages, which the loads of all links say.
TEST(CompactTraffic, FoldedMessagesFareAsEachOfThem) {
  FlowSimulator simulator;
  std::int64_t messages = 0, classes = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(800); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    DrawnFabric drawn(random);
    const Fabric& fabric = drawn.fabric;
    FaultyFabric& faulty = drawn.faulty;
    const std::vector<Pattern> patterns = random_sends(random, fabric.ranks());
    ASSERT_TRUE(check_patterns(patterns, faulty).empty());
    ASSERT_TRUE(sends_at_once(patterns));
    const auto full = build_traffic(patterns, faulty, TrafficLayout::in_full);
    const FoldedSends folded = fold_sends(patterns, faulty);
    ASSERT_EQ(folded.outcome == FoldedSends::Outcome::folded, full.has_value());
    if (!full) continue;
    ASSERT_EQ(folded.messages, full->messages());
    Drains each(full->traffic), by_class(folded.traffic);
    const FlowResult a = simulator.run_traffic(full->traffic, faulty.bytes_per_second(), &each);
    const FlowResult b = simulator.run_traffic(folded.traffic, faulty.bytes_per_second(), &by_class);
    ASSERT_EQ(b.received, static_cast<std::int64_t>(folded.traffic.messages.size()));
    ASSERT_NEAR(b.completion_time, a.completion_time, 1e-9 * a.completion_time);

    std::vector<double> ends = by_class.end;
    std::ranges::sort(ends);
    for (const double end : each.end) {
      const auto after = std::ranges::lower_bound(ends, end * (1 - 1e-9));
      ASSERT_TRUE(after != ends.end() && *after <= end * (1 + 1e-9)) << end;
    }
    const std::size_t links = fabric.links().size();
    const std::vector<double> expected = loads_of(full->traffic, links),
                              found = loads_of(folded.traffic, links);
    for (std::size_t link = 0; link < links; ++link) {
      const double load = found[static_cast<std::size_t>(folded.stands_for[link])];
      ASSERT_NEAR(load, expected[link], 1e-9 * expected[link])
          << fabric.link_name(static_cast<std::int32_t>(link));
    }
    messages += folded.messages;
    classes += static_cast<std::int64_t>(folded.traffic.messages.size());
    ++cases;
  }
  if (!test::all_seeds()) return;
  EXPECT_GT(cases, 600);
  EXPECT_LT(classes, messages * 2 / 3);
}

// Two messages of one hash are told apart all the same: all have it, or few differ in it.
TEST(CompactTraffic, FoldingDoesNotRelyOnHashes) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    DrawnFabric drawn(random);
    const Fabric& fabric = drawn.fabric;
    FaultyFabric& faulty = drawn.faulty;
    const std::vector<Pattern> patterns = random_sends(random, fabric.ranks());
    constexpr std::int64_t kEntries = 1 << 20;
    const FoldedSends folded = fold_sends(patterns, faulty, kEntries);
    for (const std::uint64_t mask : {std::uint64_t{0}, std::uint64_t{3}}) {
      const FoldedSends collided = fold_sends(patterns, faulty, kEntries, mask);
      ASSERT_EQ(collided.outcome, folded.outcome);
      EXPECT_EQ(collided.messages, folded.messages);
      EXPECT_EQ(collided.traffic.messages.size(), folded.traffic.messages.size());
      EXPECT_EQ(collided.traffic.path_links, folded.traffic.path_links);
      EXPECT_EQ(collided.stands_for, folded.stands_for);
    }
  }
}

// A line of ranks, each of which sends to the one after the next: the links at its ends carry one message, the others
// two, and what lies one or two further in differs in what it meets. To find that out would take as many walks as the
// line is long.
TEST(CompactTraffic, ChainsOfDifferencesAreNotFollowed) {
  const std::int32_t ranks = 1000;
  const Fabric fabric = make_fabric({dimension(DimensionKind::mesh, {ranks})});
  FaultyFabric faulty(fabric);
  Pattern pattern;
  pattern.operation = Operation::point_to_point;
  for (std::int32_t rank = 0; rank + 2 < ranks; ++rank) pattern.sends.push_back({rank, rank + 2, 1e6, 0});
  EXPECT_EQ(fold_sends({pattern}, faulty).outcome, FoldedSends::Outcome::too_many_classes);
}

// Nodes of 8 behind a switch of their own, and one switch for all ranks of the same index: messages stay in the node,
// leave it, or change the index before, three classes. On a torus of 5 x 5 routes have 1 to 4 hops over links that are
// all alike. A sick link sets messages apart by what they have in common with it, as many kinds on 64 nodes as on 8.
TEST(CompactTraffic, ClassesDoNotGrowWithSymmetricFabrics) {
  const auto classes = [](const Fabric& fabric, const FaultSet& faults) {
    FaultyFabric faulty(fabric);
    faulty.set_faults(faults);
    const FoldedSends folded = fold_sends(
        {collective(Operation::all_to_all, Algorithm::direct, test::ranks_up_to(fabric.ranks()), 1e6)},
        faulty);
    EXPECT_EQ(folded.messages, std::int64_t{fabric.ranks()} * (fabric.ranks() - 1));
    return folded.traffic.messages.size();
  };
  std::size_t with_sick_link = 0;
  for (const std::int64_t nodes : {8, 16, 64}) {
    const Fabric fabric =
        make_fabric({dimension(DimensionKind::switched, {8}), dimension(DimensionKind::switched, {nodes})});
    EXPECT_LE(classes(fabric, {}), 3U);
    LinkFault fault;
    fault.derate = 0.5;
    const std::size_t sick = classes(fabric, {.links = {fault}});
    if (with_sick_link == 0) with_sick_link = sick;
    EXPECT_EQ(sick, with_sick_link);
  }
  EXPECT_LT(with_sick_link, 200U);
  EXPECT_EQ(classes(make_fabric({dimension(DimensionKind::torus, {5, 5})}), {}), 4U);
}

// 512 ranks by `direct` on nodes of 8 and pairwise: a few messages, or one per rank, in memory.
TEST(CompactTraffic, MemoryGrowsWithTheRanksAtMost) {
  const Fabric fabric =
      make_fabric({dimension(DimensionKind::switched, {8}), dimension(DimensionKind::switched, {64})});
  FaultyFabric faulty(fabric);
  for (const Algorithm algorithm : {Algorithm::direct, Algorithm::pairwise}) {
    const auto plan =
        build_traffic({collective(Operation::all_to_all, algorithm, test::ranks_up_to(512), 1e6)}, faulty,
                      TrafficLayout::compact);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->messages(), 512 * 511);
    EXPECT_LE(plan->traffic.messages.size(), 512U);
    EXPECT_LE(plan->traffic.gates.size(), 512U);
  }
}

// More messages than memory holds, none like another: a mesh whose corners all differ would need them all.
TEST(CompactTraffic, WhatCannotBeFoldedIsRefused) {
  const Fabric fabric = make_fabric({dimension(DimensionKind::mesh, {3, 3})});
  FaultyFabric faulty(fabric);
  const std::vector<Pattern> patterns = {
      collective(Operation::all_to_all, Algorithm::direct, test::ranks_up_to(9), 1e6)};
  EXPECT_EQ(fold_sends(patterns, faulty, 20).outcome, FoldedSends::Outcome::too_many_classes);
  LinkFault dead;
  dead.removed = true;
  FaultSet cut;
  for (std::size_t link = 0; link < fabric.links().size(); ++link) {
    if (fabric.links()[link].source != 4) continue;
    dead.link = static_cast<std::int32_t>(link);
    cut.links.push_back(dead);
  }
  faulty.set_faults(cut);
  const FoldedSends folded = fold_sends(patterns, faulty);
  EXPECT_EQ(folded.outcome, FoldedSends::Outcome::unreachable);
  EXPECT_EQ(folded.cut.source, 4);
}

}  // namespace
}  // namespace shardscape::network
