// Do patterns become traffic with the right routes, orders and dependences?
#include "engine/network/collectives/traffic_builder.h"

#include <algorithm>
#include <cmath>

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
using test::traffic_of;

constexpr double kMessage = 1e6;

Pattern sends(std::vector<PointToPoint> list, std::vector<std::int32_t> after = {}) {
  Pattern pattern;
  pattern.operation = Operation::point_to_point;
  pattern.sends = std::move(list);
  pattern.after = std::move(after);
  return pattern;
}

TEST(TrafficBuilder, MessagesOfAGateLieTogetherInTheOrderOfTheirSending) {
  const Fabric fabric = clique(3);
  FaultyFabric faulty(fabric);
  TrafficBuilder builder(faulty);
  const std::int32_t first = builder.add_gate(), second = builder.add_gate(2.5, 0.5);
  builder.begin_group();
  const std::int32_t ab = builder.connection(0, 1), bc = builder.connection(1, 2);
  EXPECT_EQ(builder.connection(0, 1), ab);
  builder.send(second, bc, 1, TrafficBuilder::kNone);
  builder.send(first, ab, 2, second);
  builder.send(second, bc, 3, TrafficBuilder::kNone);
  builder.send(first, ab, 4, second);
  builder.begin_group();
  EXPECT_NE(builder.connection(0, 1), ab) << "connections belong to one group";
  const auto [traffic, relays] = builder.finish();
  EXPECT_EQ(relays, 0);
  ASSERT_EQ(traffic.messages.size(), 4U);
  const std::vector<double> expected = {2, 4, 1, 3};
  for (std::size_t m = 0; m < 4; ++m) EXPECT_EQ(traffic.messages[m].bytes, expected[m]);
  EXPECT_EQ(traffic.gates[0].waiting, 0);
  EXPECT_EQ(traffic.gates[1].waiting, 2);
  EXPECT_EQ(traffic.gates[1].first_message, 2);
  EXPECT_EQ(traffic.gates[1].messages, 2);
  EXPECT_EQ(traffic.gates[1].not_before, 2.5);
  EXPECT_EQ(traffic.gates[1].delay, 0.5);
}

TEST(TrafficBuilder, AGateOpensAnyNumberOfOthers) {
  const Fabric fabric = clique(2);
  FaultyFabric faulty(fabric);
  TrafficBuilder builder(faulty);
  const std::int32_t first = builder.add_gate(1.0);
  builder.begin_group();
  for (int i = 0; i < 4; ++i) {
    const std::int32_t gate = builder.add_gate();
    builder.opens(first, gate);
    builder.send(gate, builder.connection(0, 1), kMessage, TrafficBuilder::kNone);
  }
  const auto [traffic, relays] = builder.finish();
  EXPECT_EQ(relays, 3);
  EXPECT_TRUE(closed_gates(traffic).empty());
  const FlowResult result = FlowSimulator().run_traffic(traffic, faulty.bytes_per_second());
  EXPECT_EQ(result.received, 7);
  EXPECT_NEAR(result.completion_time, 1 + 4 * kMessage / kBandwidth + kLatency, 1e-9);
}

TEST(TrafficBuilder, GatesThatWaitForEachOtherAreFound) {
  const Fabric fabric = clique(2);
  FaultyFabric faulty(fabric);
  TrafficBuilder builder(faulty);
  const std::int32_t fine = builder.add_gate(), a = builder.add_gate(), b = builder.add_gate();
  builder.begin_group();
  builder.send(fine, builder.connection(0, 1), 1, TrafficBuilder::kNone);
  builder.send(a, builder.connection(0, 1), 1, b);
  builder.send(b, builder.connection(1, 0), 1, a);
  EXPECT_EQ(closed_gates(builder.finish().first), (std::vector<std::int32_t>{a, b}));
}

TEST(BuildTraffic, ARankEntersWhenItHasWhatItIsOwed) {
  // Rank 1 waits for its two messages, rank 3 is owed nothing.
  const double hop = kMessage / kBandwidth;
  const Pattern first = sends({{0, 1, kMessage, 0}, {2, 1, 3 * kMessage, 0}});
  EXPECT_NEAR(completion_time({first, sends({{1, 2, kMessage, 0}}, {0})}, clique(4)), 4 * hop + 2 * kLatency,
              1e-12);
  EXPECT_NEAR(completion_time({first, sends({{3, 2, kMessage, 0}}, {0})}, clique(4)), 3 * hop + kLatency,
              1e-12);
  // Two patterns after one, and one after both.
  const std::vector<Pattern> diamond = {sends({{0, 1, kMessage, 0}}), sends({{1, 2, kMessage, 0}}, {0}),
                                        sends({{1, 2, 2 * kMessage, 0.5}}, {0}),
                                        sends({{2, 3, kMessage, 0}}, {1, 2})};
  EXPECT_NEAR(completion_time(diamond, clique(4)), 0.5 + 3 * hop + 2 * kLatency, 1e-12);
}

TEST(BuildTraffic, CollectivesFollowEachOther) {
  const double step = kMessage / 4 / kBandwidth + kLatency;
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::halving_doubling,
                                    Algorithm::dimension_wise, Algorithm::bidirectional_ring}) {
    const auto pattern = [&](Operation operation, std::vector<std::int32_t> after) {
      Pattern result = collective(operation, algorithm, ranks_up_to(4), kMessage);
      result.after = std::move(after);
      return result;
    };
    const double alone = completion_time({pattern(Operation::reduce_scatter, {})}, clique(4));
    EXPECT_NEAR(
        completion_time({pattern(Operation::reduce_scatter, {}), pattern(Operation::reduce_scatter, {0}),
                         pattern(Operation::all_gather, {1})},
                        clique(4)),
        3 * alone, 1e-12)
        << name_of(algorithm);
  }
  Pattern tree = collective(Operation::all_reduce, Algorithm::double_binary_tree, ranks_up_to(4), kMessage);
  Pattern later = collective(Operation::all_to_all, Algorithm::pairwise, ranks_up_to(4), kMessage);
  later.after = {0};
  EXPECT_GE(completion_time({tree, later}, clique(4)),
            3 * step + completion_time({tree}, clique(4)) - 1e-3 * step);
}

TEST(BuildTraffic, ALateRankHoldsUpWhatItSendsNotWhatItHears) {
  // Rank 0 enters the ring pass late; rank 1 sends at once and its chunk waits at rank 0.
  const double hop = kMessage / kBandwidth;
  Pattern ring = collective(Operation::all_gather, Algorithm::ring, {0, 1, 2}, 3 * kMessage);
  ring.after = {0};
  const double late = 10 * hop;
  // 3 -> 0 arrives at late + hop + latency; then two steps of the ring.
  EXPECT_NEAR(completion_time({sends({{3, 0, kMessage, late}}), ring}, clique(4)),
              late + 3 * hop + 3 * kLatency, 1e-12);
}

TEST(BuildTraffic, PipelineRanksAreOwedEveryMicrobatch) {
  Pattern chain;
  chain.operation = Operation::pipeline;
  chain.groups = {{0, 1, 2}};
  chain.bytes = kMessage;
  chain.microbatches = 3;
  chain.compute = 1e-3;
  const double hop = kMessage / kBandwidth;
  // Rank 1 has its last microbatch after 3 hops, before it has forwarded any.
  const Pattern later = sends({{1, 3, 5 * kMessage, 0}}, {0});
  EXPECT_NEAR(completion_time({chain, later}, clique(4)), 8 * hop + 2 * kLatency, 1e-12);
}

TEST(BuildTraffic, EverythingOpensInEveryCombination) {
  DimensionSpec spec = dimension(DimensionKind::switched, {8});
  spec.in_network_reduction = true;
  const Fabric fabric = make_fabric({spec});
  std::vector<Pattern> patterns;
  for (std::size_t o = 0; o < enum_names<Operation>().size(); ++o) {
    for (std::size_t a = 0; a < enum_names<Algorithm>().size(); ++a) {
      const auto operation = static_cast<Operation>(o);
      const auto algorithm = static_cast<Algorithm>(a);
      if (!supports(operation, algorithm)) continue;
      Pattern pattern = collective(operation, algorithm, ranks_up_to(8), kMessage);
      if (takes_chunks(operation, algorithm)) pattern.chunks = 2;
      const auto index = static_cast<std::int32_t>(patterns.size());
      if (index > 0) pattern.after.push_back(index - 1);
      if (index > 1) pattern.after.push_back(index - 2);
      patterns.push_back(pattern);
    }
  }
  ASSERT_GT(patterns.size(), 20U);
  EXPECT_TRUE(closed_gates(traffic_of(patterns, fabric).traffic).empty());
  EXPECT_GT(completion_time(patterns, fabric), 0);
}

TEST(BuildTraffic, PairsThatDeadLinksCutOffAreNamed) {
  const Fabric fabric = make_fabric({dimension(DimensionKind::mesh, {4})});
  FaultyFabric faulty(fabric);
  FaultSet faults;
  LinkFault fault;
  fault.link = fabric.find_link(1, 2);
  fault.removed = true;
  add_fault(faults, fabric, fault, FaultDirections::both);
  faulty.set_faults(faults);
  EXPECT_TRUE(build_traffic({sends({{0, 1, kMessage, 0}})}, faulty));
  const auto plan = build_traffic({sends({{0, 1, kMessage, 0}}), sends({{0, 3, kMessage, 0}})}, faulty);
  ASSERT_FALSE(plan);
  ASSERT_EQ(plan.error().list().size(), 1U);
  EXPECT_EQ(plan.error().list()[0].field, "patterns[1]");
  EXPECT_NE(plan.error().list()[0].message.find("from 0 to 3"), std::string::npos);
}

// A gate, a message and as many beside them for each rank and axis, whatever the number of steps.
TEST(MessagesInMemory, OfDimensionWiseGrowWithTheAxes) {
  const Fabric torus = make_fabric({dimension(DimensionKind::torus, {8, 8, 8})});
  const Pattern cube =
      collective(Operation::all_reduce, Algorithm::dimension_wise, test::ranks_up_to(512), kMessage);
  EXPECT_EQ(messages_in_memory(cube, TrafficLayout::repeated, torus), 4 * 512 * 3);
  const Pattern line =
      collective(Operation::all_reduce, Algorithm::dimension_wise, test::ranks_up_to(8), kMessage);
  EXPECT_EQ(messages_in_memory(line, TrafficLayout::compact, torus), 4 * 8 * 1);
}

TEST(CheckPatterns, SaysWhatCannotRun) {
  const Fabric fabric = clique(6);
  const FaultyFabric faulty(fabric);
  const auto reported = [&](const std::vector<Pattern>& patterns, const std::string& field,
                            const std::string& part) {
    const Problems problems = check_patterns(patterns, faulty);
    for (const Problem& problem : problems.list()) {
      if (problem.field == field && problem.message.find(part) != std::string::npos) return true;
    }
    return false;
  };
  const auto with = [](auto change) {
    Pattern pattern = collective(Operation::all_reduce, Algorithm::ring, {0, 1, 2}, kMessage);
    change(pattern);
    return std::vector<Pattern>{pattern};
  };
  const std::string group = "patterns[0].groups[0]";
  EXPECT_TRUE(check_patterns(with([](Pattern&) {}), faulty).empty());
  EXPECT_TRUE(reported(with([](Pattern& p) { p.groups[0][1] = 6; }), group + "[1]", "0 .. 5"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.groups[0][1] = -1; }), group + "[1]", "out of range"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.groups[0][2] = 0; }), group + "[2]", "already"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.groups[0].clear(); }), group, "no ranks"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.bytes = 0; }), "patterns[0].bytes",
                       "must be from 1e-06 B to 1e+18 B"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.bytes = NAN; }), "patterns[0].bytes",
                       "must be from 1e-06 B to 1e+18 B"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.start = -1; }), "patterns[0].start",
                       "must be from 1e-15 s to 1e+09 s, or 0"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.after = {0}; }), "patterns[0].after[0]", "first"));
  EXPECT_TRUE(reported(with([](Pattern& p) { p.algorithm = Algorithm::pairwise; }), "patterns[0].algorithm",
                       "no algorithm"));
  EXPECT_TRUE(
      reported(with([](Pattern& p) { p.algorithm = Algorithm::halving_doubling; }), group, "power of two"));
  EXPECT_TRUE(
      reported(with([](Pattern& p) { p.algorithm = Algorithm::in_network; }), group, "in_network_reduction"));
  Pattern chunky = collective(Operation::broadcast, Algorithm::ring, {0, 1, 2}, kMessage);
  chunky.chunks = 2'000'000'000;
  EXPECT_TRUE(reported({chunky}, "patterns[0]", "more than"));
  EXPECT_TRUE(reported({sends({{2, 2, 1, 0}})}, "patterns[0].sends[0][1]", "itself"));
  const Fabric grid = make_fabric({dimension(DimensionKind::mesh, {3, 3})});
  Pattern corner = collective(Operation::all_reduce, Algorithm::dimension_wise, {0, 1, 3}, kMessage);
  EXPECT_EQ(check_patterns({corner}, FaultyFabric(grid)).list().size(), 1U);
}

}  // namespace
}  // namespace shardscape::network
