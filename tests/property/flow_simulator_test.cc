// The production simulator against the naive one, and its rates against the certificate of max-min fairness.
#include "engine/network/flows/flow_simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "engine/network/flows/max_min_solver.h"
#include "tests/support/naive_flow_simulator.h"
#include "tests/support/random_traffic.h"
#include "tests/support/seeds.h"

namespace shardscape::network {
namespace {

TEST(FlowSimulatorProperty, AgreesWithTheNaiveSolver) {
  FlowSimulator simulator;  // one for all: scratch of earlier runs must not show
  std::int64_t messages = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(3000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::RandomTraffic random = test::random_traffic(seed);
    const FlowResult fast = simulator.run_traffic(random.traffic, random.capacity);
    const FlowResult naive = simulate_naively(random.traffic, random.capacity);
    ASSERT_EQ(fast.received, naive.received);
    ASSERT_EQ(fast.received, static_cast<std::int64_t>(random.traffic.messages.size()));
    ASSERT_NEAR(fast.completion_time, naive.completion_time, 1e-9 * naive.completion_time);
    messages += fast.received;
  }
  if (test::all_seeds()) {
    EXPECT_GT(messages, 50000);
  }
}

// Scaling all bytes and capacities by one factor, or all times by another, scales the result: the equations
// have no scale of their own.
TEST(FlowSimulatorProperty, ScaleInvariant) {
  FlowSimulator simulator;
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::RandomTraffic random = test::random_traffic(seed);
    const double before = simulator.run_traffic(random.traffic, random.capacity).completion_time;
    for (Message& message : random.traffic.messages) message.bytes *= 8;
    for (double& capacity : random.capacity) capacity *= 2;  // bytes / capacity: times 4
    for (Connection& connection : random.traffic.connections) connection.latency *= 4;
    for (Gate& gate : random.traffic.gates) gate.not_before *= 4, gate.delay *= 4;
    EXPECT_NEAR(simulator.run_traffic(random.traffic, random.capacity).completion_time, 4 * before,
                1e-9 * before);
  }
}

/// Adds up what the rates carry over each connection.
class ByteCounter : public RateObserver {
 public:
  void rate_changed(double time, std::int32_t connection, double rate) override {
    State& s = state_[connection];
    s.bytes += s.rate * (time - s.since);
    s.rate = rate;
    s.since = time;
  }
  struct State {
    double bytes = 0, rate = 0, since = 0;
  };
  std::map<std::int32_t, State> state_;
};

TEST(FlowSimulatorProperty, RatesCarryExactlyTheBytes) {
  FlowSimulator simulator;
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::RandomTraffic random = test::random_traffic(seed);
    ByteCounter counter;
    simulator.run_traffic(random.traffic, random.capacity, &counter);
    std::map<std::int32_t, double> sent;
    for (const Message& message : random.traffic.messages) sent[message.connection] += message.bytes;
    for (const auto& [connection, bytes] : sent) {
      EXPECT_NEAR(counter.state_[connection].bytes, bytes, 1e-7 * bytes);
      EXPECT_EQ(counter.state_[connection].rate, 0);
    }
  }
}

/// A solver's flows as a test has set them; index: flow.
struct Flows {
  explicit Flows(const Traffic& traffic) : active(traffic.connections.size(), false) {
    for (const Connection& connection : traffic.connections) paths.push_back(traffic.path(connection));
  }
  std::vector<bool> active;
  std::vector<std::span<const std::int32_t>> paths;
};

/// Bertsekas and Gallager 1992, section 6.5.2: an allocation is max-min fair if and only if it is feasible and every
/// flow has a saturated link on which no flow is faster. The largest relative violation of that; 0 where it is true.
double violation(const MaxMinSolver& solver, const Flows& flows, std::span<const double> capacity) {
  std::vector<double> used(capacity.size(), 0), fastest(capacity.size(), 0);
  const auto each = [&](auto visit) {
    for (std::size_t flow = 0; flow < flows.paths.size(); ++flow)
      if (flows.active[flow]) visit(flows.paths[flow], solver.rate(static_cast<std::int32_t>(flow)));
  };
  each([&](std::span<const std::int32_t> path, double rate) {
    for (const std::int32_t link : path) {
      const auto l = static_cast<std::size_t>(link);
      used[l] += rate;
      fastest[l] = std::max(fastest[l], rate);
    }
  });
  double worst = 0;
  for (std::size_t l = 0; l < capacity.size(); ++l) worst = std::max(worst, used[l] / capacity[l] - 1);
  each([&](std::span<const std::int32_t> path, double rate) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::int32_t link : path) {
      const auto l = static_cast<std::size_t>(link);
      best = std::min(best, std::max(1 - used[l] / capacity[l], 1 - rate / fastest[l]));
    }
    worst = std::max(worst, best);
  });
  return worst;
}

TEST(MaxMinSolverProperty, EveryFlowKeepsItsCertificate) {
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::RandomTraffic random = test::random_traffic(seed);
    CounterRng rng(seed, 1);
    MaxMinSolver solver;
    solver.reset(random.traffic, random.capacity);
    Flows flows(random.traffic);
    std::vector<bool>& active = flows.active;
    for (int step = 0; step < 60; ++step) {
      for (std::uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
        const auto flow = rng.below(active.size());
        active[flow] ? solver.stop(static_cast<std::int32_t>(flow))
                     : solver.start(static_cast<std::int32_t>(flow));
        active[flow] = !active[flow];
      }
      solver.solve([](std::int32_t, double) {});
      ASSERT_LE(violation(solver, flows, random.capacity), 1e-9) << "step " << step;
    }
  }
}

// Idle flows are given the paths of others, shorter and longer ones, and go on from there.
TEST(MaxMinSolverProperty, ReroutedFlowsKeepTheirCertificates) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::RandomTraffic random = test::random_traffic(seed);
    const std::vector<Connection>& connections = random.traffic.connections;
    CounterRng rng(seed, 2);
    MaxMinSolver solver;
    solver.reset(random.traffic, random.capacity);
    Flows flows(random.traffic);
    std::vector<bool>& active = flows.active;
    for (int step = 0; step < 60; ++step) {
      for (std::uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
        const auto flow = rng.below(active.size());
        const auto id = static_cast<std::int32_t>(flow);
        if (active[flow]) solver.stop(id);
        if (active[flow] && rng.below(2) == 0) {
          active[flow] = false;
          continue;
        }
        const std::span<const std::int32_t> path =
            random.traffic.path(connections[rng.below(connections.size())]);
        if (!path.empty()) {
          solver.reroute(id, path);
          flows.paths[flow] = path;
        }
        solver.start(id);
        active[flow] = true;
      }
      solver.solve([](std::int32_t, double) {});
      ASSERT_LE(violation(solver, flows, random.capacity), 1e-9) << "step " << step;
    }
  }
}

// The rounds of a pairwise all-to-all on a ring: each partner is a link further away.
TEST(MaxMinSolverProperty, PathsThatGrowLinkByLinkTakeTheRoomOfTheLongest) {
  constexpr std::int32_t kLinks = 1000;
  Traffic traffic;
  traffic.path_links = {0};
  traffic.connections = {{0, 1, 0, 1, 0}};
  const std::vector<double> capacity(kLinks, 1.0);
  MaxMinSolver solver;
  solver.reset(traffic, capacity);
  std::vector<std::int32_t> path = {0};
  while (std::ssize(path) < kLinks) {
    path.push_back(static_cast<std::int32_t>(path.size()));
    solver.reroute(0, path);
    solver.start(0);
    solver.solve([](std::int32_t, double) {});
    ASSERT_EQ(solver.rate(0), 1);
    solver.stop(0);
  }
  EXPECT_LE(solver.path_room(), 4U * kLinks);
}

TEST(MaxMinSolverProperty, ViolationSeesUnfairRates) {
  // Two flows on one link, then a third that takes a part of it: solved, the shares are equal.
  Traffic traffic;
  traffic.path_links = {0, 0, 0};
  for (std::int32_t i = 0; i < 3; ++i) traffic.connections.push_back({0, 1, i, i + 1, 0});
  const std::vector<double> capacity = {6.0};
  MaxMinSolver solver;
  solver.reset(traffic, capacity);
  Flows flows(traffic);
  flows.active = {true, true, false};
  solver.start(0);
  solver.start(1);
  solver.solve([](std::int32_t, double) {});
  EXPECT_DOUBLE_EQ(solver.rate(0), 3);
  EXPECT_LE(violation(solver, flows, capacity), 1e-12);
  solver.start(2);
  flows.active[2] = true;
  EXPECT_GT(violation(solver, flows, capacity),
            0.9);  // not solved yet: flow 2 has rate 0 on a link where others have 3
  solver.solve([](std::int32_t, double) {});
  EXPECT_DOUBLE_EQ(solver.rate(2), 2);
  EXPECT_LE(violation(solver, flows, capacity), 1e-12);
}

// Flow 0 is held to 1 of 7 by a narrow link, flow 1 takes the other 6. A third one beside them finds their rates in the
// sum; where both have 3.5 the sum is the same in either order.
TEST(MaxMinSolverProperty, TheOrderOfASumShowsWhereItsRatesDiffer) {
  Traffic traffic;
  traffic.path_links = {0, 1, 0, 0};
  traffic.connections = {{0, 1, 0, 2, 0}, {0, 1, 2, 3, 0}, {0, 1, 3, 4, 0}};
  for (const double narrow : {1.0, 100.0}) {
    const std::vector<double> capacity = {7.0, narrow};
    MaxMinSolver solver;
    solver.reset(traffic, capacity);
    solver.start(0);
    solver.start(1);
    solver.solve([](std::int32_t, double) {});
    EXPECT_FALSE(solver.order_shows());
    solver.start(2);
    solver.solve([](std::int32_t, double) {});
    EXPECT_EQ(solver.order_shows(), narrow < 2);
  }
}

}  // namespace
}  // namespace shardscape::network
