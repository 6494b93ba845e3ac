// Random traffic on random link graphs: paths are arbitrary sets of links, which is all a flow simulator
// knows of a fabric.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/collectives/traffic.h"

namespace shardscape::test {

struct RandomTraffic {
  network::Traffic traffic;
  std::vector<double> capacity;
};

/// Up to 24 links, 40 connections of up to 5 links, 120 messages in layers: a gate of one layer waits for
/// messages of earlier ones.
inline RandomTraffic random_traffic(std::uint64_t seed) {
  CounterRng rng(seed, 0);
  RandomTraffic result;
  network::Traffic& t = result.traffic;
  const auto links = static_cast<std::int32_t>(1 + rng.below(24));
  // Few distinct capacities, sizes and latencies: ties are where event order could show.
  for (std::int32_t l = 0; l < links; ++l)
    result.capacity.push_back(1e9 * static_cast<double>(1 + rng.below(3)));
  const auto connections = static_cast<std::int32_t>(1 + rng.below(40));
  for (std::int32_t c = 0; c < connections; ++c) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(links));
    std::iota(all.begin(), all.end(), 0);
    const auto hops = static_cast<std::int32_t>(
        std::min<std::uint64_t>(static_cast<std::uint64_t>(links), 1 + rng.below(5)));
    network::Connection connection;
    connection.path_begin = static_cast<std::int32_t>(t.path_links.size());
    for (std::int32_t h = 0; h < hops; ++h) {
      const auto pick = static_cast<std::size_t>(h) + rng.below(all.size() - static_cast<std::size_t>(h));
      std::swap(all[static_cast<std::size_t>(h)], all[pick]);
      t.path_links.push_back(all[static_cast<std::size_t>(h)]);
    }
    connection.path_end = static_cast<std::int32_t>(t.path_links.size());
    connection.latency = 1e-6 * static_cast<double>(rng.below(3));
    t.connections.push_back(connection);
  }
  const std::uint64_t layers = 1 + rng.below(4);
  std::int32_t earlier = 0;  // messages of earlier layers
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const auto begin = static_cast<std::int32_t>(t.messages.size());
    const std::uint64_t gates = 1 + rng.below(6);
    for (std::uint64_t g = 0; g < gates; ++g) {
      network::Gate gate;
      gate.first_message = static_cast<std::int32_t>(t.messages.size());
      gate.messages = static_cast<std::int32_t>(1 + rng.below(5));
      if (rng.below(4) == 0) gate.not_before = 1e-4 * static_cast<double>(rng.below(10));
      if (rng.below(4) == 0) gate.delay = 1e-5 * static_cast<double>(rng.below(3));
      for (std::int32_t m = 0; m < gate.messages; ++m) {
        t.messages.push_back({static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(connections))),
                              -1, 1e5 * static_cast<double>(1 + rng.below(4))});
      }
      const auto id = static_cast<std::int32_t>(t.gates.size());
      // Hang the gate on some messages of earlier layers that nothing waits for yet.
      for (std::int32_t tries = 0; layer > 0 && tries < 3; ++tries) {
        network::Message& m = t.messages[rng.below(static_cast<std::uint64_t>(earlier))];
        if (m.gate >= 0) continue;
        m.gate = id;
        ++gate.waiting;
      }
      t.gates.push_back(gate);
    }
    earlier = begin + static_cast<std::int32_t>(t.messages.size()) - begin;
  }
  return result;
}

}  // namespace shardscape::test
