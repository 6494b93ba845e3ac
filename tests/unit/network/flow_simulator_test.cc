// Small traffic whose times are worked out by hand. Capacities in bytes per second, sizes in bytes: all
// numbers are small integers.
#include "engine/network/flows/flow_simulator.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/support/naive_flow_simulator.h"

namespace shardscape::network {
namespace {

class FlowSimulatorTest : public testing::Test {
 protected:
  std::int32_t connect(std::initializer_list<std::int32_t> links, double latency = 0) {
    Connection c;
    c.path_begin = static_cast<std::int32_t>(traffic_.path_links.size());
    traffic_.path_links.insert(traffic_.path_links.end(), links);
    c.path_end = static_cast<std::int32_t>(traffic_.path_links.size());
    c.latency = latency;
    traffic_.connections.push_back(c);
    return static_cast<std::int32_t>(traffic_.connections.size()) - 1;
  }
  /// A gate that releases one message.
  std::int32_t send(std::int32_t connection, double bytes, std::int32_t waiting = 0, double not_before = 0,
                    double delay = 0) {
    traffic_.gates.push_back(
        {waiting, static_cast<std::int32_t>(traffic_.messages.size()), 1, -1, not_before, delay});
    traffic_.messages.push_back({connection, -1, bytes});
    return static_cast<std::int32_t>(traffic_.gates.size()) - 1;
  }
  /// The receipt of message `message` counts down gate `gate`.
  void then(std::int32_t message, std::int32_t gate) {
    traffic_.messages[static_cast<std::size_t>(message)].gate = gate;
  }

  void expect_time(double seconds) {
    FlowSimulator simulator;
    EXPECT_NEAR(simulator.run_traffic(traffic_, capacity_).completion_time, seconds, 1e-12);
    EXPECT_NEAR(simulate_naively(traffic_, capacity_).completion_time, seconds, 1e-12);
  }

  Traffic traffic_;
  std::vector<double> capacity_;
};

TEST_F(FlowSimulatorTest, OneMessageTakesItsBytesOverTheNarrowestLinkAndTheLatency) {
  capacity_ = {10, 5, 20};
  send(connect({0, 1, 2}, 3), 40);
  expect_time(40.0 / 5 + 3);
}

// Flow A on links 0 and 1, B on 0, C on 1; capacities 10 and 6. Filling: link 1 is full at 3 (A and C), B
// takes 7. B has 70 bytes: done at 10. A and C have 30 each: done at 10, too.
TEST_F(FlowSimulatorTest, ClassicThreeFlowsOnTwoLinks) {
  capacity_ = {10, 6};
  send(connect({0, 1}), 30);
  send(connect({0}), 70);
  send(connect({1}), 30);
  expect_time(10);
}

// The same links, B with 21 bytes: it ends at t = 3. Then link 0 has only A, which stays at 3, since link 1
// is its bottleneck. At t = 10 A and C end.
TEST_F(FlowSimulatorTest, AnEndElsewhereChangesNothingWhereTheBottleneckStays) {
  capacity_ = {10, 6};
  send(connect({0, 1}), 30);
  send(connect({0}), 21);
  send(connect({1}), 30);
  expect_time(10);
}

// Two flows share 10 bytes/s. The short one (10 bytes) ends at 2; the long one has 30 - 10 = 20 left and the
// link to itself: 2 + 2 = 4.
TEST_F(FlowSimulatorTest, TheRestOfALongFlowSpeedsUp) {
  capacity_ = {10};
  send(connect({0}), 10);
  send(connect({0}), 30);
  expect_time(4);
}

// One connection carries its messages in turn: 20 then 20 bytes at 10 bytes/s drain at 2 and 4; latency 5
// adds once, to the last.
TEST_F(FlowSimulatorTest, AConnectionDrainsInOrderAndLatencyTakesNoBandwidth) {
  capacity_ = {10};
  const std::int32_t c = connect({0}, 5);
  send(c, 20);
  send(c, 20);
  expect_time(4 + 5);
}

// A relay: 0 -> 1 over link 0 (20 bytes at 10/s, latency 1) is received at 3; the gate behind it delays by 2;
// link 1 (10 bytes at 5/s) ends at 7, latency 1.
TEST_F(FlowSimulatorTest, GatesWaitForReceiptAndDelay) {
  capacity_ = {10, 5};
  send(connect({0}, 1), 20);
  const std::int32_t gate = send(connect({1}, 1), 10, 1, 0, 2);
  then(0, gate);
  expect_time(3 + 2 + 2 + 1);
}

TEST_F(FlowSimulatorTest, GatesDoNotOpenBeforeTheirTime) {
  capacity_ = {10};
  send(connect({0}), 10, 0, 6);
  expect_time(7);
}

// Messages to oneself use no link: received at once, also as a relay.
TEST_F(FlowSimulatorTest, EmptyPathsDeliverAtOnce) {
  capacity_ = {10};
  send(connect({}), 1e9);
  const std::int32_t gate = send(connect({0}), 10, 1);
  then(0, gate);
  expect_time(1);
}

TEST_F(FlowSimulatorTest, WhatWaitsForItselfIsNeverReceived) {
  capacity_ = {10};
  send(connect({0}), 10);
  const std::int32_t stuck = send(connect({0}), 10, 1);
  then(1, stuck);
  FlowSimulator simulator;
  EXPECT_EQ(simulator.run_traffic(traffic_, capacity_).received, 1);
  EXPECT_EQ(simulate_naively(traffic_, capacity_).received, 1);
}

}  // namespace
}  // namespace shardscape::network
