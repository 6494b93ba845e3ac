// Does the executor give the times that follow from its rules by hand?
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/execution_fixture.h"

namespace shardscape {
namespace {

using execution::Account;
using network::CollectiveOp;
using test::ExecutionBench;
using test::group_of;
using test::ring_of;

double at(const execution::Ledger& ledger, Account account) { return ledger[account]; }

/// 2 us per call, 3 us per step of an algorithm beside the 1 us of each link; rings only.
StackProfile::Communication communication() {
  StackProfile::Communication c = test::plain_stack().communication;
  c.call = Seconds(2e-6);
  c.rank_step = Seconds(3e-6);
  c.algorithms = {Algorithm::ring};
  return c;
}

TEST(Executor, ASingleRankTakesTheSumOfItsOperators) {
  ExecutionBench bench(test::crossbar(1), communication());
  bench.compute(1e-3);
  bench.compute(2e-3, Account::recompute);
  bench.end_program({0}, 5);
  const auto& result = bench.run();
  EXPECT_TRUE(result.deadlock.empty());
  EXPECT_DOUBLE_EQ(result.end[0], 5 * 3e-3);
  EXPECT_DOUBLE_EQ(at(result.accounts[0], Account::compute), 5e-3);
  EXPECT_DOUBLE_EQ(at(result.accounts[0], Account::recompute), 10e-3);
  EXPECT_EQ(result.operators, 10);
}

// Two layers of 1 ms and 4 ms whose launches take 3 ms each: the host is done with them at 3 and 6 ms. The
// first ends at max(1, 3), the second at max(3 + 4, 6) = 7 ms: the device waits for 2 ms.
TEST(Executor, TheHostLaunchesAheadAndHoldsTheDeviceWhereItIsSlower) {
  ExecutionBench bench(test::crossbar(1), communication());
  bench.sync_host();
  bench.compute(1e-3);
  bench.launch(3e-3);
  bench.compute(4e-3);
  bench.launch(3e-3);
  bench.end_program({0});
  const auto& result = bench.run();
  EXPECT_NEAR(result.end[0], 7e-3, 1e-12);
  EXPECT_NEAR(at(result.accounts[0], Account::host), 2e-3, 1e-12);
}

// All-reduce of 8 MB over a ring of 4: 6 steps of 2 MB at 1 GB/s, each with 1 us of its link and 3 us of the
// step, after 2 us of the call.
TEST(Executor, ARingTakesItsClosedForm) {
  ExecutionBench bench(ring_of(4), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(4, 1));
  const std::int32_t call = bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(8e6));
  bench.start(lane, call, 3);
  bench.join(lane);
  bench.end_program({0, 1, 2, 3});
  const auto& result = bench.run();
  const double one = 2e-6 + 6 * (2e-3 + 4e-6);
  for (const double end : result.end) EXPECT_NEAR(end, 3 * one, 1e-12);
  EXPECT_NEAR(at(result.accounts[2], Account::tensor_comm), 3 * one, 1e-12);
  EXPECT_EQ(result.messages, 3 * 6 * 4);
}

// The call takes 2 us + 2 x (2 ms + 4 us) on a ring of 2 with 4 MB; compute of 1 ms beside it hides 1 ms.
TEST(Executor, WhatIsStartedRunsBesideTheDevice) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(2, 1));
  bench.start(lane, bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(4e6)));
  bench.compute(1e-3);
  bench.join(lane);
  bench.end_program({0, 1});
  const auto& result = bench.run();
  const double call = 2e-6 + 2 * (2e-3 + 4e-6);
  EXPECT_NEAR(result.end[0], call, 1e-12);
  EXPECT_NEAR(at(result.accounts[0], Account::tensor_comm), call - 1e-3, 1e-12);
}

// Two lanes over the same two ranks send 2 MB each way at once: they share the link, so that each call's
// single step takes 4 ms instead of 2.
TEST(Executor, LanesContendForLinks) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t a = bench.builder().add_lane(group_of(2, 1));
  const std::int32_t b = bench.builder().add_lane(group_of(2, 1));
  bench.start(a, bench.builder().call(a, CollectiveOp::all_gather, Bytes(4e6)));
  bench.start(b, bench.builder().call(b, CollectiveOp::all_gather, Bytes(4e6)));
  bench.join(a);
  bench.join(b);
  bench.end_program({0, 1});
  EXPECT_NEAR(bench.run().end[0], 2e-6 + 4e-3 + 4e-6, 1e-12);
}

// In turns the same calls take 2 ms each, one behind the other, each with the 2 us of its call and 4 us on the way;
// who waits for one waits for both.
TEST(Executor, LanesThatTakeTurnsDoNot) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t a = bench.builder().add_lane(group_of(2, 1));
  const std::int32_t b = bench.builder().add_lane(group_of(2, 1));
  bench.builder().take_turns(b, a);
  bench.start(b, bench.builder().call(b, CollectiveOp::all_gather, Bytes(4e6)));
  bench.start(a, bench.builder().call(a, CollectiveOp::all_gather, Bytes(4e6)));
  bench.join(b);
  bench.end_program({0, 1});
  EXPECT_NEAR(bench.run().end[0], 2 * (2e-6 + 2e-3 + 4e-6), 1e-12);
}

// Rank 0 works for 1 ms and sends 1 MB: 2 us of the call, 1 ms, 4 us on the way. Rank 1 starts then and works
// for 2 ms. A sender that waits ends with the receipt.
TEST(Executor, AMessageDelaysTheReceiverAndABlockingOneTheSender) {
  for (const bool blocking : {false, true}) {
    ExecutionBench bench(ring_of(2), communication());
    const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return 1 - rank; });
    bench.compute(1e-3);
    bench.send(channel, 1e6);
    if (blocking) bench.sent(channel);
    bench.end_program({0});
    bench.receive(channel);
    bench.compute(2e-3);
    bench.end_program({1});
    const auto& result = bench.run();
    const double transfer = 2e-6 + 1e-3 + 4e-6;
    EXPECT_NEAR(result.end[0], blocking ? 1e-3 + transfer : 1e-3, 1e-12);
    EXPECT_NEAR(result.end[1], 1e-3 + transfer + 2e-3, 1e-12);
    EXPECT_NEAR(at(result.accounts[1], Account::bubble), 1e-3, 1e-12);
    EXPECT_NEAR(at(result.accounts[1], Account::pipeline_comm), transfer, 1e-12);
  }
}

// In a pass round the ring each rank owes its successor alone. Rank 1 comes 10 ms late: rank 0 has what it is
// owed at 1 ms, rank 2 waits for rank 1, and rank 1 is done when it enters, its message being there.
TEST(Executor, AMemberIsNotDoneBeforeItHasEntered) {
  ExecutionBench bench(ring_of(3), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(3, 1));
  const std::int32_t call = bench.builder().call(lane, CollectiveOp::ring_pass, Bytes(1e6));
  for (const std::int32_t rank : {0, 1, 2}) {
    bench.compute(rank == 1 ? 10e-3 : 0);
    bench.start(lane, call);
    bench.join(lane);
    bench.end_program({rank});
  }
  const auto& result = bench.run();
  ASSERT_TRUE(result.deadlock.empty());
  const double pass = 2e-6 + 1e-3 + 4e-6;
  EXPECT_NEAR(result.end[0], pass, 1e-12);
  EXPECT_NEAR(result.end[1], 10e-3 + 2e-6, 1e-12);
  EXPECT_NEAR(result.end[2], 10e-3 + pass, 1e-12);
}

TEST(Executor, AccountsAddUpToTheEnd) {
  ExecutionBench bench(ring_of(4), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(2, 1));
  const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return (rank + 2) % 4; });
  const std::int32_t call = bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(1e6));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    bench.sync_host();
    bench.compute(1e-4 * (rank + 1));
    bench.start(lane, call);
    bench.join(lane);
    bench.launch(3e-3);
    bench.send(channel, 1e5 * (rank + 1));
    bench.receive(channel);
    bench.end_program({rank}, 7);
  }
  const auto& result = bench.run();
  ASSERT_TRUE(result.deadlock.empty());
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double sum = std::accumulate(result.accounts[rank].begin(), result.accounts[rank].end(), 0.0);
    EXPECT_NEAR(sum, result.end[rank], 1e-12);
  }
}

// ---- programs that do not end ----

TEST(Executor, AMessageThatNobodySendsIsExplained) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return 1 - rank; });
  bench.compute(1e-3);
  bench.end_program({0});
  bench.receive(channel);
  bench.end_program({1});
  const auto& result = bench.run();
  ASSERT_EQ(result.deadlock.size(), 1U);
  EXPECT_EQ(result.deadlock[0],
            "rank 1 waits for message 0 from rank 0, which is never sent, at instruction 1 in block 1 of its "
            "program");
}

TEST(Executor, RanksThatWaitForEachOtherAreNamed) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t channel = bench.builder().add_channel([](std::int32_t rank) { return 1 - rank; });
  bench.receive(channel);
  bench.send(channel, 1);
  bench.end_program({0, 1});
  const auto& result = bench.run();
  ASSERT_EQ(result.deadlock.size(), 2U);
  EXPECT_NE(result.deadlock[0].find("rank 0 waits for message 0 from rank 1"), std::string::npos);
  EXPECT_NE(result.deadlock[1].find("rank 1 waits for message 0 from rank 0"), std::string::npos);
}

TEST(Executor, AMemberThatStaysAwayIsNamed) {
  ExecutionBench bench(ring_of(3), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(3, 1));
  const std::int32_t call = bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(3e6));
  bench.start(lane, call);
  bench.join(lane);
  bench.end_program({0, 1});
  bench.compute(1e-3);
  bench.end_program({2});
  const auto& result = bench.run();
  ASSERT_EQ(result.deadlock.size(), 2U);
  EXPECT_EQ(result.deadlock[0],
            "rank 0 waits in call 0 of its group (all_reduce by ring, 3000000 bytes), at instruction 1 in "
            "block 1 of its program: missing are ranks 2");
}

TEST(Executor, CallsThatDoNotFitAreNamed) {
  ExecutionBench bench(ring_of(2), communication());
  const std::int32_t lane = bench.builder().add_lane(group_of(2, 1));
  const std::int32_t a = bench.builder().call(lane, CollectiveOp::all_reduce, Bytes(2e6));
  const std::int32_t b = bench.builder().call(lane, CollectiveOp::all_gather, Bytes(2e6));
  for (const std::int32_t rank : {0, 1}) {
    bench.start(lane, rank == 0 ? a : b);
    bench.join(lane);
    bench.end_program({rank});
  }
  const auto& result = bench.run();
  ASSERT_FALSE(result.deadlock.empty());
  EXPECT_EQ(result.deadlock[0],
            "rank 1 makes all_gather by ring, 2000000 bytes as call 0 of its group, where others make "
            "all_reduce by ring, 2000000 bytes");
}

}  // namespace
}  // namespace shardscape
