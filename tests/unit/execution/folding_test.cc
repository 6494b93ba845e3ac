// Which ranks does one stand for, and is it said when it may not?
#include "engine/execution/folding.h"

#include <gtest/gtest.h>

#include "engine/execution/program_counts.h"
#include "tests/support/execution_fixture.h"

namespace shardscape {
namespace {

using execution::Fold;
using network::CollectiveOp;
using test::ExecutionBench;
using test::group_of;
using test::ring_of;

StackProfile::Communication communication_by(Algorithm algorithm) {
  StackProfile::Communication c = test::plain_stack().communication;
  c.call = Seconds(2e-6);
  c.algorithms = {algorithm};
  return c;
}

std::vector<std::int32_t> ranks_below(std::int32_t count) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(count));
  for (std::int32_t r = 0; r < count; ++r) ranks[static_cast<std::size_t>(r)] = r;
  return ranks;
}

/// An executor of its own, so that the result outlives those of others.
execution::ExecutionResult execute(const ExecutionBench& bench, Fold fold) {
  execution::Executor executor;
  return executor.run(bench.programs(), bench.capacity(), nullptr, fold);
}

// An all-reduce of 8 MB over a ring of 4: 6 steps of 2 MB at 1 GB/s and 1 us each, after 2 us of the call. One rank
// stands for all; what is counted is that of all: 4 entries, 24 messages, drained and received.
TEST(Folding, OneRankOfARingStandsForAll) {
  ExecutionBench bench(ring_of(4), communication_by(Algorithm::ring));
  const std::int32_t lane = bench.builder().add_lane(group_of(4, 1));
  bench.start(lane, bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(8e6)));
  bench.join(lane);
  bench.compute(1e-3);
  bench.end_program(ranks_below(4));
  bench.run();
  const execution::ExecutionResult result = execute(bench, Fold::always);
  EXPECT_EQ(result.executed_ranks, 1);
  ASSERT_EQ(result.end.size(), 4U);
  for (const double end : result.end) EXPECT_NEAR(end, 2e-6 + 6 * (2e-3 + 1e-6) + 1e-3, 1e-12);
  EXPECT_EQ(result.operators, 4);
  EXPECT_EQ(result.messages, 24);
  EXPECT_EQ(result.events, 4 + 4 + 24 + 24);
}

// All-gather of 8 MB by direct sends through a switch of 4: each link up carries three parts of 2 MB at the same
// time, 6 ms at 1 GB/s. The rank that stands for all has them on one link.
TEST(Folding, FlowsOfOneClassShareTheirLink) {
  ExecutionBench bench(test::crossbar(4, 1e9, 1e-6), communication_by(Algorithm::direct));
  const std::int32_t lane = bench.builder().add_lane(group_of(4, 1));
  bench.start(lane, bench.builder().call(lane, CollectiveOp::all_gather, Bytes(8e6)));
  bench.join(lane);
  bench.end_program(ranks_below(4));
  bench.run();
  const execution::ExecutionResult result = execute(bench, Fold::always);
  EXPECT_EQ(result.executed_ranks, 1);
  EXPECT_NEAR(result.end[3], 2e-6 + 6e-3 + 2e-6, 1e-12);
  EXPECT_EQ(result.end, execute(bench, Fold::never).end);
}

// Pairs on a ring of 8, one rank of which computes for longer: its pair differs, and within it the two ranks; the
// other three pairs do the same, and are one rank.
TEST(Folding, ASlowRankIsToldFromTheOthers) {
  ExecutionBench bench(ring_of(8), communication_by(Algorithm::ring));
  const std::int32_t lane = bench.builder().add_lane(group_of(2, 1));
  const std::int32_t call = bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(2e6));
  const auto add_program = [&](double seconds, const std::vector<std::int32_t>& ranks) {
    bench.compute(seconds);
    bench.start(lane, call);
    bench.join(lane);
    bench.end_program(ranks);
  };
  add_program(1e-3, ranks_below(8));
  add_program(2e-3, {4});
  bench.run();
  const execution::ExecutionResult result = execute(bench, Fold::always);
  EXPECT_EQ(result.executed_ranks, 3);
  EXPECT_NEAR(result.end[4] - result.end[0], 1e-3, 1e-12);
  EXPECT_EQ(result.end, execute(bench, Fold::never).end);
}

// The two rings of a bidirectional ring of two use one connection in the same instant: which of the parcels goes
// first is a matter of order, so that every rank is executed.
TEST(Folding, RanksAreExecutedWhereTheOrderOfAnInstantShows) {
  ExecutionBench bench(ring_of(2), communication_by(Algorithm::bidirectional_ring));
  const std::int32_t lane = bench.builder().add_lane(group_of(2, 1));
  bench.start(lane, bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(8e6)));
  bench.join(lane);
  bench.end_program({0, 1});
  bench.run();
  EXPECT_EQ(execute(bench, Fold::always).executed_ranks, 2);
}

TEST(Folding, AStandstillIsExplainedForEveryRank) {
  ExecutionBench bench(ring_of(4), communication_by(Algorithm::ring));
  const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return (rank + 1) % 4; });
  bench.receive(channel);
  bench.send(channel, 1);
  bench.end_program(ranks_below(4));
  bench.run();
  EXPECT_EQ(execute(bench, Fold::always).deadlock.size(), 4U);
}

TEST(Folding, AShortProgramIsNotSearchedForSymmetry) {
  ExecutionBench bench(ring_of(4), communication_by(Algorithm::ring));
  bench.compute(1e-3);
  bench.end_program(ranks_below(4));
  bench.run();
  EXPECT_EQ(execute(bench, Fold::when_it_pays).executed_ranks, 4);
}

// Two passes over a program with an operator, two calls in a row of a ring of 4 (a reduce-scatter: 3 steps, 12
// messages) and a message to the next rank.
TEST(ProgramCounts, AreThoseOfTheExecution) {
  ExecutionBench bench(ring_of(4), communication_by(Algorithm::ring));
  const std::int32_t lane = bench.builder().add_lane(group_of(4, 1));
  const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return (rank + 1) % 4; });
  bench.compute(1e-3);
  bench.start(lane, bench.builder().call(lane, CollectiveOp::reduce_scatter, Bytes(8e6)), 2);
  bench.join(lane);
  bench.send(channel, 1e6);
  bench.receive(channel);
  bench.end_program(ranks_below(4), 2);
  const execution::ExecutionResult& result = bench.run();
  const execution::ProgramCounts counts = execution::count(bench.programs());
  EXPECT_EQ(counts.operators, 2 * 4);
  EXPECT_EQ(counts.entries, 2 * 2 * 4);
  EXPECT_EQ(counts.messages, 2 * (2 * 12 + 4));
  EXPECT_EQ(counts.drained, counts.messages);
  EXPECT_EQ(counts.events(), result.events);
}

}  // namespace
}  // namespace shardscape
