// Small fabrics, and a replay of traffic in a random order that the gates allow.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/flows/flow_simulator.h"

namespace shardscape::test {

inline constexpr double kBandwidth = 1e9;
inline constexpr double kLatency = 1e-6;

inline DimensionSpec dimension(DimensionKind kind, std::vector<std::int64_t> shape) {
  DimensionSpec spec;
  spec.name = name_of(kind);
  spec.kind = kind;
  spec.shape = std::move(shape);
  spec.bandwidth = BytesPerSecond(kBandwidth);
  spec.latency = Seconds(kLatency);
  return spec;
}

inline network::Fabric make_fabric(std::vector<DimensionSpec> dimensions) {
  FabricSpec spec;
  spec.name = "test";
  for (std::size_t d = 0; d < dimensions.size(); ++d) dimensions[d].name += std::to_string(d);
  spec.dimensions = std::move(dimensions);
  EXPECT_TRUE(spec.validate().empty());
  return network::Fabric(spec);
}

/// Every rank linked to every other.
inline network::Fabric clique(std::int64_t n) {
  return make_fabric({dimension(DimensionKind::fully_connected, {n})});
}

inline std::vector<std::int32_t> ranks_up_to(std::int32_t n) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline network::Pattern collective(network::Operation operation, network::Algorithm algorithm,
                                   std::vector<std::int32_t> group, double bytes) {
  network::Pattern pattern;
  pattern.operation = operation;
  pattern.algorithm = algorithm;
  pattern.groups = {std::move(group)};
  pattern.bytes = bytes;
  return pattern;
}

/// With every message of a ring in full, so that each can be looked at.
inline network::PatternTraffic traffic_of(const std::vector<network::Pattern>& patterns,
                                          const network::Fabric& fabric) {
  network::FaultyFabric faulty(fabric);
  const Problems problems = network::check_patterns(patterns, faulty);
  for (const Problem& problem : problems.list()) {
    ADD_FAILURE() << problem.field << ": " << problem.message;
  }
  auto plan = network::build_traffic(patterns, faulty, network::TrafficLayout::in_full);
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

inline double completion_time(const std::vector<network::Pattern>& patterns, const network::Fabric& fabric) {
  const network::PatternTraffic plan = traffic_of(patterns, fabric);
  const network::FaultyFabric faulty(fabric);
  const network::FlowResult result =
      network::FlowSimulator().run_traffic(plan.traffic, faulty.bytes_per_second());
  EXPECT_EQ(result.received, static_cast<std::int64_t>(plan.traffic.messages.size()));
  return result.completion_time;
}

/// What a replay reports: the message, and which one of its connection it is (from 0).
struct ReplayHooks {
  std::function<void(std::size_t message, std::size_t index)> released, received;
};

/// Opens gates as soon as they can and delivers messages (of each connection in order) in a random order.
/// Returns the number of messages received.
inline std::size_t replay(const network::Traffic& traffic, std::uint64_t seed, const ReplayHooks& hooks) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> waiting, open;
  std::vector<std::deque<std::size_t>> queues(traffic.connections.size());
  std::vector<std::size_t> busy, released(queues.size()), delivered(queues.size());
  for (std::size_t g = 0; g < traffic.gates.size(); ++g) {
    waiting.push_back(traffic.gates[g].waiting);
    if (waiting.back() == 0) open.push_back(static_cast<std::int32_t>(g));
  }
  const auto count_down = [&](std::int32_t gate) {
    if (gate >= 0 && --waiting[static_cast<std::size_t>(gate)] == 0) open.push_back(gate);
  };
  const auto take = [&](auto& list) {
    std::swap(list[random() % list.size()], list.back());
    const auto value = list.back();
    list.pop_back();
    return value;
  };
  std::size_t received = 0;
  while (!open.empty() || !busy.empty()) {
    if (!open.empty()) {
      const network::Gate& gate = traffic.gates[static_cast<std::size_t>(take(open))];
      for (std::int32_t i = 0; i < gate.messages; ++i) {
        const auto m = static_cast<std::size_t>(gate.first_message + i);
        const auto c = static_cast<std::size_t>(traffic.messages[m].connection);
        if (hooks.released) hooks.released(m, released[c]);
        ++released[c];
        if (queues[c].empty()) busy.push_back(c);
        queues[c].push_back(m);
      }
      count_down(gate.next_gate);
    } else {
      const std::size_t c = take(busy);
      const std::size_t m = queues[c].front();
      queues[c].pop_front();
      if (!queues[c].empty()) busy.push_back(c);
      if (hooks.received) hooks.received(m, delivered[c]);
      ++delivered[c];
      ++received;
      count_down(traffic.messages[m].gate);
    }
  }
  return received;
}

}  // namespace shardscape::test
