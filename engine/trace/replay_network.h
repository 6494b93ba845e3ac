// The network under a replay: links as the software stack drives them, and the collectives of a trace as
// messages on them.
//
// A collective takes the algorithm that is fastest when its group runs it alone on the healthy fabric:
//   all_reduce, reduce_scatter, all_gather   ring, dimension-wise
//   broadcast, reduce                        direct, binary tree, chain; the last two in 1 .. 64 chunks. The
//                                            first rank of the group is the root
//   all_to_all, gather, scatter              direct
//   barrier                                  a double binary tree of empty messages
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "engine/network/collectives.h"
#include "engine/network/faulty_fabric.h"
#include "engine/network/flow_simulator.h"
#include "engine/spec/stack.h"
#include "engine/trace/linked_trace.h"

namespace shardscape::trace {

class ReplayNetwork {
 public:
  /// `routes` carries the faults. Without `stack` messages use links fully and calls cost nothing.
  ReplayNetwork(network::FaultyFabric& routes, const StackProfile::Communication* stack);

  [[nodiscard]] network::FaultyFabric& routes() { return routes_; }
  /// By link id, after faults, at the stack's achieved share.
  [[nodiscard]] std::span<const double> bytes_per_second() const { return bytes_per_second_; }
  /// Fixed cost of a collective, send or receive before its first message.
  [[nodiscard]] double call_seconds() const { return call_; }

  /// Adds the messages of one collective. `entry` and `exit`: a gate per member of the group.
  void add(network::TrafficBuilder& builder, const CollectiveInstance& collective,
           const std::vector<std::int32_t>& ranks, const std::vector<std::int32_t>& entry,
           const std::vector<std::int32_t>& exit);
  /// Messages that add() makes, without relays.
  [[nodiscard]] double message_count(const CollectiveInstance& collective,
                                     const std::vector<std::int32_t>& ranks);
  /// Adds what the stack takes for each message to the latencies of finished traffic.
  void add_step_latency(network::Traffic& traffic) const;

 private:
  struct Choice {
    network::Algorithm algorithm = network::Algorithm::ring;
    std::int32_t chunks = 1;
  };
  [[nodiscard]] std::vector<Choice> candidates(CollectiveKind kind,
                                               std::span<const std::int32_t> ranks) const;
  const Choice& choose(const CollectiveInstance& collective, const std::vector<std::int32_t>& ranks);
  [[nodiscard]] double time_alone(const CollectiveInstance& collective,
                                  const std::vector<std::int32_t>& ranks, const Choice& choice);
  static void add_messages(network::GroupTraffic group, const CollectiveInstance& collective,
                           const Choice& choice);

  network::FaultyFabric& routes_;
  network::FaultyFabric healthy_;
  double call_ = 0, step_ = 0, step_scale_out_ = 0;
  std::vector<double> bytes_per_second_, healthy_bytes_per_second_;
  network::FlowSimulator simulator_;
  std::map<std::tuple<std::int32_t, CollectiveKind, double>, Choice> choices_;  ///< by group, kind, bytes
};

}  // namespace shardscape::trace
