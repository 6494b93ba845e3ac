// The network under a replay: links as the software stack drives them, and the collectives of a trace as
// messages on them.
//
// A collective takes the algorithm of the stack's library that HealthyCosts takes, where its group is one
// of those that tile the machine; for other lists of ranks the one that is fastest when the group runs it
// alone on the healthy fabric, rings over channels among them where it leaves a domain. A reduce runs a broadcast
// backwards along a chain; gather and scatter are direct; a barrier is a double binary tree of one byte. The first rank
// of a group is the root.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "engine/network/collectives/collectives.h"
#include "engine/network/prices/healthy_costs.h"
#include "engine/network/prices/priced_network.h"
#include "engine/spec/fault.h"
#include "engine/spec/stack.h"
#include "engine/timeline/linked_trace.h"

namespace shardscape::timeline {

class ReplayNetwork {
 public:
  /// `fabric` and `stack` must outlive the object. `memory_rate`: as in CollectiveSetup.
  ReplayNetwork(const network::Fabric& fabric, const StackProfile::Communication& stack,
                BytesPerSecond memory_rate, const NodeCollectives& node, const FaultSet& faults);

  [[nodiscard]] network::FaultyFabric& routes() { return network_.routes(); }
  /// Bandwidth by link id, after faults, at the share that the stack achieves.
  [[nodiscard]] std::span<const double> bytes_per_second() const { return network_.bytes_per_second(); }
  /// Fixed cost in seconds of a collective, send or receive before its first message.
  [[nodiscard]] double call_seconds() const { return stack_.call.value(); }

  /// Adds the messages of one collective, each member's own copies before its first. `entry` and `exit`: a
  /// gate per member of the group; `before`: the exits of the group's collective before it, or nothing.
  /// Copies begin behind those, as a communicator works off its calls one after the other.
  void add(network::TrafficBuilder& builder, const CollectiveInstance& collective,
           const std::vector<std::int32_t>& ranks, const std::vector<std::int32_t>& entry,
           const std::vector<std::int32_t>& exit, const std::vector<std::int32_t>& before);
  /// Approximate number of messages of add(); exact for rings, also over channels where those are possible, which make
  /// most.
  [[nodiscard]] double message_count(const CollectiveInstance& collective,
                                     std::span<const std::int32_t> ranks);
  /// The most of these messages that lie in memory at once: the steps of a ring share one.
  [[nodiscard]] double messages_in_memory(const CollectiveInstance& collective,
                                          std::span<const std::int32_t> ranks);
  /// Adds the stack's time for each message to the latencies of finished traffic.
  void add_step_latency(network::Traffic& traffic) const;

 private:
  struct Choice {
    network::Pattern pattern;  ///< the pattern, in which the groups are left empty
    Seconds beyond_links;      ///< time beside the links, see HealthyCosts::beyond_links
  };
  [[nodiscard]] const Choice& choose(const CollectiveInstance& collective,
                                     const std::vector<std::int32_t>& ranks);
  /// The pattern with the algorithm that is fastest when the group runs it alone. `channels`: number of rings over
  /// channels that may be used, else 0.
  [[nodiscard]] network::Pattern fastest_alone(network::Pattern pattern, std::int32_t channels);
  /// Number of rings over channels that a group may use, as in ways_of(); 0 where it has none.
  [[nodiscard]] std::int32_t channels_of(const CollectiveInstance& collective,
                                         std::span<const std::int32_t> ranks);

  const StackProfile::Communication& stack_;
  network::PricedNetwork network_, healthy_;
  network::HealthyCosts model_;
  std::map<std::int32_t, double> memory_share_;  ///< key: rank whose memory is slow
  std::map<std::tuple<std::int32_t, CollectiveKind, double>, Choice> choices_;  ///< key: group, kind, bytes
  /// Results of channels_of(), by group.
  std::map<std::int32_t, std::int32_t> channels_;
};

/// The lattice whose members are these ranks in this order, beginning with the first; nothing where they are no lattice
/// of a plan's levels that tiles a machine of `machine` ranks.
std::optional<network::RankGroup> as_lattice(std::span<const std::int32_t> ranks, std::int32_t machine);

}  // namespace shardscape::timeline
