// Does each algorithm send what its formula says, and does every rank end with what the operation promises?
#include "engine/network/collectives/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "tests/support/traffic_fixture.h"

namespace shardscape::network {
namespace {

using test::clique;
using test::collective;
using test::completion_time;
using test::dimension;
using test::kBandwidth;
using test::kLatency;
using test::make_fabric;
using test::ranks_up_to;
using test::replay;
using test::traffic_of;

constexpr double kGroupBytes = 3.0 * 5 * 7 * 64 * 1024;

Fabric reducing_switch(std::int64_t n) {
  DimensionSpec spec = dimension(DimensionKind::switched, {n});
  spec.in_network_reduction = true;
  return make_fabric({spec});
}

Fabric fabric_for(Algorithm algorithm, std::int32_t n) {
  return algorithm == Algorithm::in_network ? reducing_switch(n) : clique(n);
}

std::vector<double> bytes_sent(const Traffic& traffic, std::int32_t vertices) {
  std::vector<double> bytes(static_cast<std::size_t>(vertices));
  for (const Message& m : traffic.messages) {
    const Connection& c = traffic.connections[static_cast<std::size_t>(m.connection)];
    bytes[static_cast<std::size_t>(c.source)] += m.bytes;
  }
  return bytes;
}

/// Whose contributions each vertex can know of at the end, as bits: a message carries what its source knew
/// when it was released.
std::vector<std::uint64_t> knowledge(const PatternTraffic& plan, std::int32_t vertices, std::int32_t ranks,
                                     std::uint64_t seed) {
  std::vector<std::uint64_t> known(static_cast<std::size_t>(vertices));
  for (std::int32_t r = 0; r < ranks; ++r) known[static_cast<std::size_t>(r)] = std::uint64_t{1} << r;
  std::map<std::size_t, std::uint64_t> carried;
  const auto connection = [&](std::size_t m) -> const Connection& {
    return plan.traffic.connections[static_cast<std::size_t>(plan.traffic.messages[m].connection)];
  };
  const std::size_t received = replay(plan.traffic, seed,
                                      {[&](std::size_t m, std::size_t) {
                                         carried[m] = known[static_cast<std::size_t>(connection(m).source)];
                                       },
                                       [&](std::size_t m, std::size_t) {
                                         known[static_cast<std::size_t>(connection(m).destination)] |=
                                             carried[m];
                                       }});
  EXPECT_EQ(received, plan.traffic.messages.size());
  return known;
}

struct Choice {
  Operation operation;
  Algorithm algorithm;
};

std::vector<Choice> all_choices() {
  std::vector<Choice> choices;
  for (std::size_t o = 0; o < enum_names<Operation>().size(); ++o) {
    for (std::size_t a = 0; a < enum_names<Algorithm>().size(); ++a) {
      const Choice choice{static_cast<Operation>(o), static_cast<Algorithm>(a)};
      if (supports(choice.operation, choice.algorithm)) choices.push_back(choice);
    }
  }
  return choices;
}

TEST(Collectives, EveryRankHearsFromEveryRankThatItShould) {
  for (const Choice& choice : all_choices()) {
    for (const std::int32_t n : {2, 3, 4, 5, 7, 8, 13, 16}) {
      if (choice.algorithm == Algorithm::halving_doubling && !std::has_single_bit(static_cast<unsigned>(n))) {
        continue;
      }
      SCOPED_TRACE(std::string(name_of(choice.operation)) + " " + std::string(name_of(choice.algorithm)) +
                   " " + std::to_string(n));
      const Fabric fabric = fabric_for(choice.algorithm, n);
      Pattern pattern = collective(choice.operation, choice.algorithm, ranks_up_to(n), kGroupBytes);
      if (takes_chunks(choice.operation, choice.algorithm)) pattern.chunks = 3;
      const PatternTraffic plan = traffic_of({pattern}, fabric);
      EXPECT_DOUBLE_EQ(static_cast<double>(plan.messages()), message_count(pattern, n));
      const std::uint64_t everyone = (std::uint64_t{1} << n) - 1;
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const std::vector<std::uint64_t> known = knowledge(plan, fabric.vertices(), n, seed);
        for (std::int32_t r = 0; r < n; ++r) {
          const std::uint64_t heard = known[static_cast<std::size_t>(r)];
          EXPECT_EQ(choice.operation == Operation::broadcast ? heard & 1 : heard,
                    choice.operation == Operation::broadcast ? 1 : everyone)
              << "rank " << r << ", order " << seed;
        }
      }
    }
  }
}

TEST(Collectives, BytesPerRank) {
  // Bandwidth-optimal algorithms send B (n-1)/n per pass (Thakur et al. 2005); a switch that reduces takes B
  // from each rank.
  for (const Choice& choice : all_choices()) {
    const bool tree =
        choice.algorithm == Algorithm::double_binary_tree || choice.operation == Operation::broadcast;
    if (tree || choice.algorithm == Algorithm::in_network) continue;
    const std::int32_t n = 8;
    const PatternTraffic plan =
        traffic_of({collective(choice.operation, choice.algorithm, ranks_up_to(n), kGroupBytes)}, clique(n));
    const double passes = choice.operation == Operation::all_reduce ? 2 : 1;
    for (const double sent : bytes_sent(plan.traffic, n)) {
      EXPECT_NEAR(sent, passes * kGroupBytes * (n - 1) / n, 1e-6) << name_of(choice.algorithm);
    }
  }
}

TEST(Collectives, RingReducesEachChunkOnceAndSpreadsIt) {
  // Message k from i carries chunk i - k: a partial sum for the first n - 1 steps, the final one afterwards.
  for (const std::size_t n : {2U, 3U, 8U}) {
    const auto size = static_cast<std::int32_t>(n);
    const PatternTraffic plan = traffic_of(
        {collective(Operation::all_reduce, Algorithm::ring, ranks_up_to(size), kGroupBytes)}, clique(size));
    using Sum = std::vector<int>;  // how often each rank's part is in it
    std::vector<std::vector<Sum>> held(n, std::vector<Sum>(n, Sum(n)));
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t c = 0; c < n; ++c) held[r][c][r] = 1;
    }
    std::map<std::size_t, Sum> carried;
    const auto place = [&](std::size_t m) {
      const auto& c = plan.traffic.connections[static_cast<std::size_t>(plan.traffic.messages[m].connection)];
      return std::pair(static_cast<std::size_t>(c.source), static_cast<std::size_t>(c.destination));
    };
    const auto chunk = [&](std::size_t m, std::size_t k) { return (place(m).first + 2 * n - k) % n; };
    replay(plan.traffic, 1,
           {[&](std::size_t m, std::size_t k) { carried[m] = held[place(m).first][chunk(m, k)]; },
            [&](std::size_t m, std::size_t k) {
              Sum& mine = held[place(m).second][chunk(m, k)];
              if (k >= n - 1)
                mine = carried[m];
              else
                std::ranges::transform(mine, carried[m], mine.begin(), std::plus<>());
            }});
    for (const auto& chunks : held) {
      for (const Sum& sum : chunks) EXPECT_EQ(sum, Sum(n, 1));
    }
  }
}

TEST(Collectives, HalvingDoublingExchangesTheRightHalves) {
  // On the way there rank i holds partial sums of the chunks that agree with it in the bits exchanged so far;
  // over distance d it gives away those that differ from it in bit d. On the way back, over distance d, it
  // sends the chunks that agree with it in bit d and all bits exchanged before d on the way there.
  constexpr std::size_t n = 16;
  for (const HalvingOrder order : {HalvingOrder::near_first, HalvingOrder::far_first}) {
    Pattern pattern =
        collective(Operation::all_reduce, Algorithm::halving_doubling, ranks_up_to(n), kGroupBytes);
    pattern.halving_order = order;
    const PatternTraffic plan = traffic_of({pattern}, clique(n));
    using Sum = std::vector<int>;
    std::vector<std::vector<Sum>> held(n, std::vector<Sum>(n, Sum(n)));
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t c = 0; c < n; ++c) held[r][c][r] = 1;
    }
    std::map<std::size_t, std::map<std::size_t, Sum>> carried;
    const auto ends = [&](std::size_t m) {
      const auto& c = plan.traffic.connections[static_cast<std::size_t>(plan.traffic.messages[m].connection)];
      return std::pair(static_cast<std::size_t>(c.source), static_cast<std::size_t>(c.destination));
    };
    const auto released = [&](std::size_t m, std::size_t k) {
      const auto [i, j] = ends(m);
      const std::size_t d = i ^ j;
      const std::size_t before = order == HalvingOrder::near_first ? d - 1 : (n - 1) & ~(2 * d - 1);
      for (std::size_t c = 0; c < n; ++c) {
        const bool goes = ((c ^ i) & before) == 0 && ((c ^ (k == 0 ? j : i)) & d) == 0;
        if (goes) carried[m][c] = held[i][c];
      }
      EXPECT_NEAR(plan.traffic.messages[m].bytes, kGroupBytes / n * static_cast<double>(carried[m].size()),
                  1e-6);
    };
    const auto received = [&](std::size_t m, std::size_t k) {
      const std::size_t j = ends(m).second;
      for (const auto& [c, sum] : carried[m]) {
        Sum& mine = held[j][c];
        if (k == 1)
          mine = sum;
        else
          std::ranges::transform(mine, sum, mine.begin(), std::plus<>());
      }
    };
    EXPECT_EQ(replay(plan.traffic, 5, {released, received}), plan.traffic.messages.size());
    for (const auto& chunks : held) {
      for (const Sum& sum : chunks) EXPECT_EQ(sum, Sum(n, 1));
    }
  }
}

TEST(Collectives, DoubleTreeSharesTheWork) {
  // Each of the two trees moves B/2 up and down n-1 edges: 2 (n-1) B in all. Who is inner in one tree (at
  // most two children) is a leaf of the other: 3 B/2 + B/2 at most where n is even.
  for (const std::int32_t n : {2, 4, 6, 10, 16, 32}) {
    Pattern pattern =
        collective(Operation::all_reduce, Algorithm::double_binary_tree, ranks_up_to(n), kGroupBytes);
    pattern.chunks = 4;
    const std::vector<double> sent = bytes_sent(traffic_of({pattern}, clique(n)).traffic, n);
    EXPECT_NEAR(std::accumulate(sent.begin(), sent.end(), 0.0), 2 * (n - 1) * kGroupBytes, 1e-3) << n;
    EXPECT_LE(std::ranges::max(sent), 2 * kGroupBytes + 1e-6) << n;
  }
}

TEST(Collectives, StepsTakeTheirTime) {
  // On a clique nothing contends; every step is latency plus bytes over bandwidth.
  const double step = kGroupBytes / 8 / kBandwidth + kLatency;
  const Fabric fabric = clique(8);
  const auto time = [&](Operation operation, Algorithm algorithm, std::int32_t chunks = 1) {
    Pattern pattern = collective(operation, algorithm, ranks_up_to(8), kGroupBytes);
    pattern.chunks = chunks;
    return completion_time({pattern}, fabric);
  };
  EXPECT_NEAR(time(Operation::all_reduce, Algorithm::ring), 14 * step, 1e-12);
  EXPECT_NEAR(time(Operation::all_gather, Algorithm::ring), 7 * step, 1e-12);
  EXPECT_NEAR(time(Operation::all_reduce, Algorithm::bidirectional_ring),
              14 * (kGroupBytes / 16 / kBandwidth + kLatency), 1e-12);
  EXPECT_NEAR(time(Operation::all_reduce, Algorithm::direct), 2 * step, 1e-12);
  EXPECT_NEAR(time(Operation::all_to_all, Algorithm::direct), step, 1e-12);
  EXPECT_NEAR(time(Operation::all_to_all, Algorithm::pairwise), 7 * step, 1e-12);
  EXPECT_NEAR(time(Operation::reduce_scatter, Algorithm::halving_doubling),
              kGroupBytes * 7 / 8 / kBandwidth + 3 * kLatency, 1e-12);
  EXPECT_NEAR(time(Operation::broadcast, Algorithm::direct), kGroupBytes / kBandwidth + kLatency, 1e-12);
  // Chain: the last of c chunks leaves after B/bw and then takes n-2 more hops of B/c.
  EXPECT_NEAR(time(Operation::broadcast, Algorithm::ring, 10),
              (kGroupBytes + 6 * kGroupBytes / 10) / kBandwidth + 7 * kLatency, 1e-12);
  // Heap of 8: the deepest rank is 3 hops away, and every hop has a link of its own.
  EXPECT_NEAR(time(Operation::broadcast, Algorithm::binary_tree, 10),
              (kGroupBytes + 2 * kGroupBytes / 10) / kBandwidth + 3 * kLatency, 1e-12);
}

TEST(Collectives, PairwiseByXorExchanges) {
  Pattern pattern = collective(Operation::all_to_all, Algorithm::pairwise, ranks_up_to(8), kGroupBytes);
  pattern.partners = PairwisePartners::exclusive_or;
  // On a hypercube with one-hop partners in rounds 1, 2 and 4 and more hops otherwise; on a clique like
  // shift.
  EXPECT_NEAR(completion_time({pattern}, clique(8)), 7 * (kGroupBytes / 8 / kBandwidth + kLatency), 1e-12);
}

TEST(Collectives, SwitchReducesInTheNetwork) {
  const std::int32_t n = 8;
  const Fabric fabric = reducing_switch(n);
  const auto pattern = [&](Operation operation, std::int32_t chunks) {
    Pattern result = collective(operation, Algorithm::in_network, ranks_up_to(n), kGroupBytes);
    result.chunks = chunks;
    return result;
  };
  // All chunks go up after B/bw; the last one then comes down.
  EXPECT_NEAR(completion_time({pattern(Operation::all_reduce, 16)}, fabric),
              kGroupBytes * (1 + 1.0 / 16) / kBandwidth + 2 * kLatency, 1e-12);
  const std::vector<double> sent =
      bytes_sent(traffic_of({pattern(Operation::all_reduce, 16)}, fabric).traffic, fabric.vertices());
  for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) EXPECT_NEAR(sent[r], kGroupBytes, 1e-6);
  EXPECT_NEAR(sent[static_cast<std::size_t>(n)], n * kGroupBytes, 1e-6);  // one result to each rank
  // Reduce-scatter: B up, B/n down; all-gather: B/n up, the others' down.
  EXPECT_NEAR(completion_time({pattern(Operation::reduce_scatter, 1)}, fabric),
              kGroupBytes * (1 + 1.0 / n) / kBandwidth + 2 * kLatency, 1e-12);
  EXPECT_NEAR(completion_time({pattern(Operation::all_gather, 1)}, fabric),
              kGroupBytes / kBandwidth + 2 * kLatency, 1e-12);
}

TEST(Collectives, SwitchTreeFollowsTheLevelsOfAFatTree) {
  DimensionSpec spec = dimension(DimensionKind::fat_tree, {8});
  spec.fat_tree.levels = 2;
  spec.fat_tree.radix = 4;
  spec.in_network_reduction = true;
  const Fabric fabric = make_fabric({spec});
  const FaultyFabric faulty(fabric);
  SwitchTree tree;
  ASSERT_TRUE(find_switch_tree(faulty, ranks_up_to(8), tree));
  // A spine, four leaves with two ranks each.
  ASSERT_EQ(tree.nodes.size(), 13U);
  EXPECT_EQ(tree.nodes[0].below, 8);
  int leaves = 0;
  for (std::size_t v = 1; v < tree.nodes.size(); ++v) {
    const SwitchTree::Node& node = tree.nodes[v];
    const Link& up = fabric.links()[static_cast<std::size_t>(node.up)];
    const Link& down = fabric.links()[static_cast<std::size_t>(node.down)];
    EXPECT_EQ(up.source, down.destination);
    EXPECT_EQ(up.destination, down.source);
    if (node.member >= 0) {
      EXPECT_EQ(up.source, node.member);
    }
    leaves += node.below == 2 ? 1 : 0;
  }
  EXPECT_EQ(leaves, 4);
  EXPECT_NEAR(
      completion_time({collective(Operation::all_reduce, Algorithm::in_network, ranks_up_to(8), kGroupBytes)},
                      fabric),
      4 * (kGroupBytes / kBandwidth + kLatency), 1e-12);
  EXPECT_FALSE(find_switch_tree(FaultyFabric(clique(4)), ranks_up_to(4), tree));
}

TEST(Collectives, DimensionWiseShrinksTheDataAxisByAxis) {
  // 4 x 2: rings of 4 with B, then of 2 with B/4; on a torus axis of 4 each step goes over a link of its own.
  const Fabric fabric = make_fabric({dimension(DimensionKind::torus, {4, 2})});
  const Pattern pattern =
      collective(Operation::all_reduce, Algorithm::dimension_wise, ranks_up_to(8), kGroupBytes);
  const double inner = 3 * (kGroupBytes / 4 / kBandwidth + kLatency);
  const double outer = 1 * (kGroupBytes / 4 / 2 / kBandwidth + kLatency);
  EXPECT_NEAR(completion_time({pattern}, fabric), 2 * (inner + outer), 1e-12);
}

TEST(Collectives, PipelinePassesMicrobatchesOn) {
  Pattern pattern;
  pattern.operation = Operation::pipeline;
  pattern.groups = {{0, 1, 2, 3}};
  pattern.bytes = kGroupBytes;
  pattern.microbatches = 5;
  pattern.compute = 7e-6;
  const double hop = kGroupBytes / kBandwidth;
  EXPECT_NEAR(completion_time({pattern}, clique(4)), (5 + 2) * hop + 3 * kLatency + 2 * pattern.compute,
              1e-12);
  pattern.interval = 10 * hop;  // every microbatch travels alone
  pattern.start = 1;
  EXPECT_NEAR(completion_time({pattern}, clique(4)),
              1 + 4 * pattern.interval + 3 * (hop + kLatency) + 2 * pattern.compute, 1e-12);
}

}  // namespace
}  // namespace shardscape::network
