// Do replays take the time that a pencil gives, and do traces that can't run say why?
#include "engine/timeline/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/timeline/replay_network.h"
#include "tests/support/fabrics.h"
#include "tests/support/naive_flow_simulator.h"

namespace shardscape::timeline {
namespace {

using network::dimension_of;
using network::Fabric;
using network::fabric_of;

constexpr double kLatency = 1e-6;  ///< of one link of these fabrics, which carries 1 GB/s

using Ids = std::vector<std::uint64_t>;

TraceNode compute(double seconds, bool host = false) {
  TraceNode node;
  node.kind = NodeKind::compute;
  node.seconds = seconds;
  node.host = host;
  return node;
}
TraceNode message(NodeKind kind, std::int32_t peer, double bytes, std::int32_t tag = 0) {
  TraceNode node;
  node.kind = kind;
  node.peer = peer;
  node.bytes = bytes;
  node.tag = tag;
  return node;
}
TraceNode send(std::int32_t to, double bytes, std::int32_t tag = 0) {
  return message(NodeKind::send, to, bytes, tag);
}
TraceNode receive(std::int32_t from, double bytes, std::int32_t tag = 0) {
  return message(NodeKind::receive, from, bytes, tag);
}
TraceNode collective(CollectiveKind kind, double bytes, std::int32_t group = 0) {
  TraceNode node;
  node.kind = NodeKind::collective;
  node.collective = kind;
  node.bytes = bytes;
  node.group = group;
  return node;
}

ExecutionTrace ranks(std::size_t count) {
  ExecutionTrace trace;
  trace.ranks.resize(count);
  return trace;
}

Replay run(const ExecutionTrace& trace, const Fabric& fabric, ReplayOptions options = {}) {
  const auto fast = replay(trace, fabric, options);
  EXPECT_TRUE(fast.has_value()) << (fast ? "" : fast.error().front().message);
  if (!fast) return {};
  options.simulator = network::simulate_naively;
  const auto naive = replay(trace, fabric, options);
  EXPECT_NEAR(naive->step_time, fast->step_time, 1e-9 * fast->step_time);
  for (const RankUse& use : fast->ranks) {
    EXPECT_NEAR(use.compute + use.exposed + use.idle, fast->step_time, 1e-9 * fast->step_time);
  }
  return *fast;
}

TraceProblem problem_of(const ExecutionTrace& trace, const Fabric& fabric) {
  const auto result = replay(trace, fabric, {});
  EXPECT_FALSE(result.has_value());
  return result ? TraceProblem{} : result.error().front();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Fabric ring(std::int64_t size) { return fabric_of({dimension_of("ring", DimensionKind::ring, {size})}); }

TEST(Replay, ComputeThenMessageThenCompute) {
  // Rank 0: 1 ms, then 2 MB to rank 1 (2 ms + 1 us), which computes 3 ms after it; rank 0 idles.
  ExecutionTrace trace = ranks(2);
  const auto first = trace.ranks[0].add(compute(1e-3), {});
  trace.ranks[0].add(send(1, 2e6), Ids{first});
  const auto arrived = trace.ranks[1].add(receive(0, 2e6), {});
  trace.ranks[1].add(compute(3e-3), Ids{arrived});
  const Replay out = run(trace, ring(2));
  EXPECT_NEAR(out.step_time, 6e-3 + kLatency, 1e-12);
  EXPECT_NEAR(out.ranks[0].compute, 1e-3, 1e-15);
  EXPECT_NEAR(out.ranks[0].exposed, 2e-3 + kLatency, 1e-12);
  EXPECT_NEAR(out.ranks[0].idle, 3e-3, 1e-12);
  EXPECT_NEAR(out.ranks[1].exposed, 2e-3 + kLatency, 1e-12);  // not while nothing was sent yet
  EXPECT_NEAR(out.ranks[1].idle, 1e-3, 1e-12);
}

TEST(Replay, RingAllReduceAndItsOverlap) {
  // 4 ranks round a ring, 4 MB: 2 (n - 1) steps of 1 MB, 1 ms + 1 us each. Beside it 4 ms of compute.
  ExecutionTrace trace = ranks(4);
  trace.groups = {{"all", {0, 1, 2, 3}, {}}};
  for (RankTrace& rank : trace.ranks) {
    rank.add(collective(CollectiveKind::all_reduce, 4e6), {});
    rank.add(compute(4e-3), {});
  }
  const double time = 6 * (1e-3 + kLatency);
  const Replay out = run(trace, ring(4));
  EXPECT_NEAR(out.step_time, time, 1e-12);
  EXPECT_NEAR(out.ranks[2].communication, time, 1e-12);
  EXPECT_NEAR(out.ranks[2].exposed, time - 4e-3, 1e-12);
}

TEST(Replay, CollectivesHaveTheBytesThatTheirRanksPutIn) {
  // On a ring of 4, per rank: all_gather of 1 MB each: 3 steps of 1 MB; reduce_scatter of 4 MB: 3 steps of 1
  // MB. From the root over the chain of a ring of 2: the whole buffer. Scatter of 4 MB from 0: parts of 1 MB,
  // two over link 0-1 (to 1 and 2), one over 0-3.
  const auto time_of = [](CollectiveKind kind, double bytes, std::int64_t size) {
    ExecutionTrace trace = ranks(static_cast<std::size_t>(size));
    trace.groups = {{"", {}, {}}};
    for (RankTrace& rank : trace.ranks) rank.add(collective(kind, bytes), {});
    return run(trace, ring(size)).step_time;
  };
  EXPECT_NEAR(time_of(CollectiveKind::all_gather, 1e6, 4), 3 * (1e-3 + kLatency), 1e-12);
  EXPECT_NEAR(time_of(CollectiveKind::reduce_scatter, 4e6, 4), 3 * (1e-3 + kLatency), 1e-12);
  EXPECT_NEAR(time_of(CollectiveKind::reduce_scatter_block, 4e6, 4), 3 * (1e-3 + kLatency), 1e-12);
  EXPECT_NEAR(time_of(CollectiveKind::broadcast, 3e6, 2), 3e-3 + kLatency, 1e-9);
  EXPECT_NEAR(time_of(CollectiveKind::reduce, 3e6, 2), 3e-3 + kLatency, 1e-9);
  EXPECT_NEAR(time_of(CollectiveKind::scatter, 4e6, 4), 2e-3 + 2 * kLatency, 1e-9);
  EXPECT_NEAR(time_of(CollectiveKind::gather, 1e6, 4), 2e-3 + 2 * kLatency, 1e-9);
  EXPECT_GT(time_of(CollectiveKind::barrier, 0, 4), 0);
  EXPECT_LT(time_of(CollectiveKind::barrier, 0, 4), 20 * kLatency);
  // Each rank sends a quarter of 4 MB to each other rank; + links carry 1 (to the neighbour) + 2 (half way
  // goes in + direction, over two links): 3 parts.
  EXPECT_NEAR(time_of(CollectiveKind::all_to_all, 4e6, 4), 3e-3 + 2 * kLatency, 2e-6);
}

TEST(Replay, DeviceAndHostRunOneNodeAtATime) {
  // Two nodes of 2 ms and 3 ms on the device, one of 4 ms on the host, none depends on another.
  ExecutionTrace trace = ranks(1);
  trace.ranks[0].add(compute(2e-3), {});
  trace.ranks[0].add(compute(3e-3), {});
  trace.ranks[0].add(compute(4e-3, true), {});
  const Replay out = run(trace, ring(2));
  EXPECT_NEAR(out.step_time, 5e-3, 1e-15);
  EXPECT_NEAR(out.ranks[0].compute, 5e-3, 1e-15);
}

TEST(Replay, LowestIdFirst) {
  // Two microbatches of two layers, 1 ms each, on rank 0, each sent on (1 us and next to no bytes); rank 1
  // takes 2 ms for one. By ids rank 0 ends the first microbatch at 2 ms and rank 1 both at 6 ms. Ready first,
  // rank 0 runs both first layers, the first microbatch ends at 3 ms, and rank 1 at 7 ms.
  ExecutionTrace trace = ranks(2);
  for (std::int32_t microbatch = 0; microbatch < 2; ++microbatch) {
    const auto first = trace.ranks[0].add(compute(1e-3), {});
    const auto second = trace.ranks[0].add(compute(1e-3), Ids{first});
    trace.ranks[0].add(send(1, 1, microbatch), Ids{second});
    const auto got = trace.ranks[1].add(receive(0, 1, microbatch), {});
    trace.ranks[1].add(compute(2e-3), Ids{got});
  }
  EXPECT_NEAR(run(trace, ring(2)).step_time, 6e-3 + kLatency, 1e-8);
  ReplayOptions options;
  options.order = ReplayOrder::ready_first;
  EXPECT_NEAR(run(trace, ring(2), options).step_time, 7e-3 + kLatency, 1e-8);
}

TEST(Replay, ADeviceDoesNotWaitForALowIdWhileAHighOneIsReady) {
  // Node 1 waits 5 ms for its message; node 2 (3 ms) is ready at once and done by then.
  ExecutionTrace trace = ranks(2);
  trace.ranks[1].add(send(0, 5e6), {});
  const auto got = trace.ranks[0].add(receive(1, 5e6), {});
  trace.ranks[0].add(compute(1e-3), Ids{got});
  trace.ranks[0].add(compute(3e-3), {});
  EXPECT_NEAR(run(trace, ring(2)).step_time, 6e-3 + kLatency, 1e-12);
}

TEST(Replay, IdsOrderWhatSimpleListSchedulingOrders) {
  // Random graphs on one device and its host against the schedule in its shortest form: whenever one of them
  // is free, the lowest id of what is ready. Durations of one to three milliseconds make for many ties.
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CounterRng random(seed, 0);
    const std::size_t count = 2 + random.below(12);
    std::vector<Ids> after(count);
    ExecutionTrace trace = ranks(1);
    for (std::size_t n = 0; n < count; ++n) {
      for (std::size_t before = 0; before < n; ++before) {
        if (random.below(4) == 0) after[n].push_back(before);
      }
      trace.ranks[0].add(compute(1e-3 * static_cast<double>(1 + random.below(3)), random.below(3) == 0),
                         after[n]);
    }
    std::vector<int> ends(count, -1);
    int free[2] = {0, 0};  // device, host
    for (int now = 0; now < 100; ++now) {
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t n = 0; n < count && !moved; ++n) {
          const TraceNode& node = trace.ranks[0].nodes[n];
          const bool ready = std::ranges::all_of(
              after[n], [&](std::uint64_t before) { return ends[before] >= 0 && ends[before] <= now; });
          if (ends[n] >= 0 || !ready || free[node.host ? 1 : 0] > now) continue;
          ends[n] = free[node.host ? 1 : 0] = now + static_cast<int>(std::lround(node.seconds * 1e3));
          moved = true;
        }
      }
    }
    EXPECT_NEAR(run(trace, ring(2)).step_time, 1e-3 * std::ranges::max(ends), 1e-9) << "seed " << seed;
  }
}

TEST(Replay, StreamOrderNeverDeadlocks) {
  // Rank 0's first node by number waits for rank 1, which waits for rank 0's second node.
  ExecutionTrace trace = ranks(2);
  RankTrace& zero = trace.ranks[0];
  const auto in = zero.add(receive(1, 1e6), {});
  zero.add(compute(1e-3), Ids{in});
  const auto free = zero.add(compute(2e-3), {});
  zero.add(send(1, 1e6), Ids{free});
  const auto got = trace.ranks[1].add(receive(0, 1e6), {});
  trace.ranks[1].add(send(0, 1e6), Ids{got});
  EXPECT_NEAR(run(trace, ring(2)).step_time, 2e-3 + 2 * (1e-3 + kLatency) + 1e-3, 1e-12);
}

TEST(Replay, MessagesContend) {
  // Ranks 0 and 1 both send 1 MB to rank 2 over the link 1-2 of a ring of 5: half the rate each.
  ExecutionTrace trace = ranks(5);
  trace.ranks[0].add(send(2, 1e6), {});
  trace.ranks[1].add(send(2, 1e6), {});
  trace.ranks[2].add(receive(0, 1e6), {});
  trace.ranks[2].add(receive(1, 1e6), {});
  EXPECT_NEAR(run(trace, ring(5)).step_time, 2e-3 + 2 * kLatency, 1e-12);
}

TEST(Replay, StackCostsAndFaults) {
  ExecutionTrace trace = ranks(2);
  trace.ranks[0].add(send(1, 1e6), {});
  trace.ranks[1].add(receive(0, 1e6), {});
  ReplayOptions options;
  options.stack.call = Seconds(1e-5);
  options.stack.rank_step = Seconds(2e-5);
  options.stack.scale_up_fraction = 0.5;
  EXPECT_NEAR(run(trace, ring(2), options).step_time, 1e-5 + 2e-5 + kLatency + 2e-3, 1e-12);
  options.faults.links.push_back({0, 0.25, {}});
  EXPECT_NEAR(run(trace, ring(2), options).step_time, 1e-5 + 2e-5 + kLatency + 8e-3, 1e-12);
}

TEST(Replay, OwnCopiesComeBeforeTheMessages) {
  // All-gather of two ranks: the ring moves 0.5 MB once, a rank reads and writes 3 - 1/2 bytes per byte of
  // the gathered buffer (its bytes in a trace are one rank's part).
  ExecutionTrace trace = ranks(2);
  trace.groups = {{"", {0, 1}, {}}};
  for (RankTrace& rank : trace.ranks) rank.add(collective(CollectiveKind::all_gather, 1e6), {});
  ReplayOptions options;
  options.stack.local_copy = 1.5;
  options.memory_rate = BytesPerSecond(1e10);
  const double wire = run(trace, ring(2)).step_time;
  EXPECT_NEAR(run(trace, ring(2), options).step_time, wire + 1.5 * 2.5 * 2e6 / 1e10, 1e-12);
}

TEST(Replay, GroupsByDimension) {
  // A 2 x 2 torus of dimensions of their own: involved_dim picks the pairs along the second.
  const Fabric fabric =
      fabric_of({dimension_of("a", DimensionKind::ring, {2}), dimension_of("b", DimensionKind::ring, {2})});
  ExecutionTrace trace = ranks(4);
  trace.groups = {{"", {}, {false, true}}};
  for (RankTrace& rank : trace.ranks) rank.add(collective(CollectiveKind::all_gather, 1e6), {});
  EXPECT_NEAR(run(trace, fabric).step_time, 1e-3 + kLatency, 1e-12);
  trace.groups = {{"", {}, {true, false, true}}};
  EXPECT_TRUE(contains(problem_of(trace, fabric).message, "involved_dim has 3 entries"))
      << problem_of(trace, fabric).message;
}

TEST(Replay, GroupsThatDoNotTileDomainsHaveARingForEachAdapter) {
  // Three of four ranks of each of two nodes, whose inner links are fast. One ring would send 2 * 5/6 of the buffer
  // over one adapter; three rings send a third of that over three, which no algorithm undercuts.
  DimensionSpec node = dimension_of("node", DimensionKind::switched, {4});
  node.bandwidth = BytesPerSecond(1e12);
  DimensionSpec network = dimension_of("network", DimensionKind::switched, {2});
  network.scope = LinkScope::scale_out;
  const Fabric fabric = fabric_of({node, network});
  ExecutionTrace trace = ranks(8);
  trace.groups = {{"", {0, 1, 2, 4, 5, 6}, {}}};
  for (const std::size_t rank : {0U, 1U, 2U, 4U, 5U, 6U})
    trace.ranks[rank].add(collective(CollectiveKind::all_reduce, 9e8), {});
  ReplayOptions options;
  options.stack.algorithms = {network::Algorithm::ring};
  const Replay out = run(trace, fabric, options);
  const double over_adapters = 2 * 5.0 / 6 * 9e8 / 3 / 1e9;
  EXPECT_GE(out.step_time, over_adapters);
  EXPECT_LE(out.step_time, 1.02 * over_adapters);
  // 2 (n - 1) steps of n messages, in each of the rings; that is what keeps traces from being too large.
  EXPECT_EQ(out.messages, 3 * 2 * 5 * 6);
  ReplayNetwork replayed(fabric, options.stack, {}, options.node, {});
  CollectiveInstance all_reduce;
  all_reduce.kind = CollectiveKind::all_reduce;
  all_reduce.bytes = 9e8;
  EXPECT_EQ(replayed.message_count(all_reduce, trace.groups[0].ranks), 3 * 2 * 5 * 6);
}

TEST(Replay, StepsOfAllAlgorithmsCountInTheChoice) {
  // Three of five ranks of each of two nodes, a box that tiles no machine. A byte takes one step to all others, or
  // 2 + 1 steps along one axis after the other.
  const Fabric fabric = fabric_of(
      {dimension_of("a", DimensionKind::switched, {5}), dimension_of("b", DimensionKind::switched, {2})});
  ExecutionTrace trace = ranks(10);
  trace.groups = {{"", {0, 1, 2, 5, 6, 7}, {}}};
  for (const std::int32_t rank : trace.groups[0].ranks)
    trace.ranks[static_cast<std::size_t>(rank)].add(collective(CollectiveKind::all_gather, 1), {});
  ReplayOptions options;
  options.stack.rank_step = Seconds(1e-3);
  options.stack.algorithms = {network::Algorithm::dimension_wise, network::Algorithm::direct};
  EXPECT_NEAR(run(trace, fabric, options).step_time, 1e-3, 10 * kLatency);
  options.stack.algorithms = {network::Algorithm::dimension_wise};
  EXPECT_NEAR(run(trace, fabric, options).step_time, 3e-3, 10 * kLatency);
}

TEST(Replay, EstimatesFollowTheRoofline) {
  ExecutionTrace trace = ranks(1);
  TraceNode node = compute(0);
  node.operations = 1e12;
  node.tensor_bytes = 1e6;
  trace.ranks[0].add(node, {});
  trace.ranks[0].add(compute(1), {});
  DeviceSpec device;
  device.sm.count = 100;
  device.sm.clock = Hertz(1e9);
  device.sm.tensor_flops_per_clock = {0, 0, 1000, 1000, 0, 0};
  device.hbm.stacks = 1;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e12);
  EXPECT_EQ(estimate_durations(trace, device), 1);
  EXPECT_NEAR(trace.ranks[0].nodes[0].seconds, 1e12 / 1e14, 1e-12);
  EXPECT_EQ(trace.ranks[0].nodes[1].seconds, 1);
}

TEST(ReplayProblems, CircleWithinARank) {
  ExecutionTrace trace = ranks(1);
  trace.ranks[0].add(compute(1), Ids{2});
  trace.ranks[0].add(compute(1), Ids{0});
  trace.ranks[0].add(compute(1), Ids{1});
  const TraceProblem problem = problem_of(trace, ring(2));
  EXPECT_EQ(problem.rank, 0);
  EXPECT_TRUE(problem.node.has_value());
  EXPECT_TRUE(contains(problem.message, "go round in a circle")) << problem.message;
  ExecutionTrace self = ranks(1);
  self.ranks[0].add(compute(1), Ids{0});
  EXPECT_TRUE(contains(problem_of(self, ring(2)).message, "waits for itself"));
}

TEST(ReplayProblems, DeadlockBetweenRanks) {
  // Each receives before it sends.
  ExecutionTrace trace = ranks(2);
  for (std::int32_t r = 0; r < 2; ++r) {
    const auto got = trace.ranks[static_cast<std::size_t>(r)].add(receive(1 - r, 8), {});
    trace.ranks[static_cast<std::size_t>(r)].add(send(1 - r, 8), Ids{got});
  }
  const TraceProblem problem = problem_of(trace, ring(2));
  for (const char* part : {"deadlock", "of rank 0", "of rank 1", "receive", "send"}) {
    EXPECT_TRUE(contains(problem.message, part)) << problem.message;
  }
}

TEST(ReplayProblems, CollectivesInDifferentOrders) {
  // Two groups of the same ranks, met in opposite order.
  ExecutionTrace trace = ranks(2);
  trace.groups = {{"a", {0, 1}, {}}, {"b", {0, 1}, {}}};
  for (std::int32_t r = 0; r < 2; ++r) {
    RankTrace& rank = trace.ranks[static_cast<std::size_t>(r)];
    const auto first = rank.add(collective(CollectiveKind::all_reduce, 8, r), {});
    rank.add(collective(CollectiveKind::all_reduce, 8, 1 - r), Ids{first});
  }
  EXPECT_TRUE(contains(problem_of(trace, ring(2)).message, "deadlock"));
}

TEST(ReplayProblems, PartnersThatAreMissingOrDiffer) {
  ExecutionTrace trace = ranks(2);
  trace.ranks[1].add(compute(1), {});
  trace.ranks[1].add(receive(0, 8, 5), {});
  TraceProblem problem = problem_of(trace, ring(2));
  EXPECT_EQ(problem.rank, 1);
  EXPECT_EQ(problem.node, 1U);
  EXPECT_TRUE(contains(problem.message, "receives from rank 0 with tag 5, which sends it nothing"))
      << problem.message;
  trace.ranks[0].add(send(1, 16, 5), {});
  EXPECT_TRUE(
      contains(problem_of(trace, ring(2)).message, "receives 8 bytes, node 0 of rank 0 sends 16 bytes"));
  trace.ranks[1].nodes[1].bytes = 16;
  EXPECT_TRUE(replay(trace, ring(2), {}).has_value());
  trace.ranks[0].add(send(1, 16, 5), {});
  EXPECT_TRUE(contains(problem_of(trace, ring(2)).message, "which has only 1 receives"));
  trace.ranks[0].nodes[1].peer = 7;
  EXPECT_TRUE(
      contains(problem_of(trace, ring(2)).message, "sends to rank 7, which has no trace; ranks are 0 .. 1"));
}

TEST(ReplayProblems, CollectivesThatDiffer) {
  ExecutionTrace trace = ranks(3);
  trace.groups = {{"g", {0, 2}, {}}};
  trace.ranks[0].add(collective(CollectiveKind::all_reduce, 8), {});
  trace.ranks[2].add(collective(CollectiveKind::all_reduce, 16), {});
  TraceProblem problem = problem_of(trace, ring(3));
  EXPECT_EQ(problem.rank, 2);
  EXPECT_TRUE(
      contains(problem.message,
               "all_reduce of 16 bytes meets node 0 of rank 0, all_reduce of 8 bytes, in process group 'g'"))
      << problem.message;
  trace.ranks[2].nodes[0].bytes = 8;
  EXPECT_TRUE(replay(trace, ring(3), {}).has_value());
  trace.ranks[0].add(collective(CollectiveKind::broadcast, 8), {});
  EXPECT_TRUE(contains(problem_of(trace, ring(3)).message, "waits for rank 2 for ever"));
  trace.ranks[1].add(collective(CollectiveKind::broadcast, 8), {});
  trace.ranks[2].add(collective(CollectiveKind::broadcast, 8), {});
  EXPECT_TRUE(contains(problem_of(trace, ring(3)).message, "which rank 1 is no member of"));
  trace.groups[0].ranks = {0, 3};
  problem = problem_of(trace, ring(3));
  EXPECT_EQ(problem.rank, -1);
  EXPECT_TRUE(contains(problem.message, "names rank 3, which has no trace; ranks are 0 .. 2"))
      << problem.message;
}

TEST(ReplayProblems, UnknownDependenciesIdsAndTooManyRanks) {
  ExecutionTrace trace = ranks(2);
  trace.ranks[1].add(compute(1), Ids{9});
  EXPECT_TRUE(
      contains(problem_of(trace, ring(2)).message, "depends on node 9, which its trace does not have"));
  trace.ranks[1] = {};
  trace.ranks[1].add(compute(1), {});
  trace.ranks[1].add(compute(1), {});
  trace.ranks[1].nodes[0].id = trace.ranks[1].nodes[1].id = 4;
  EXPECT_TRUE(contains(problem_of(trace, ring(2)).message, "used by more than one node"));
  EXPECT_TRUE(contains(problem_of(ranks(5), ring(2)).message, "traces of 5 ranks, the fabric has 2 GPUs"));
}

}  // namespace
}  // namespace shardscape::timeline
