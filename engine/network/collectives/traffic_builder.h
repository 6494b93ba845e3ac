// From patterns to traffic: connections with routes, messages, and the gates between them.
//
// TrafficBuilder records what is sent and what waits for what, in any order; finish() lays it out as Traffic.
// A gate may open any number of others: Traffic::Gate holds one successor, and the further ones are reached
// by relays, messages of no bytes on an empty path.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/network/collectives/patterns.h"
#include "engine/network/collectives/traffic.h"
#include "engine/network/fabric/faulty_fabric.h"

namespace shardscape::network {

/// Stands for no gate, no connection or no message.
inline constexpr std::int32_t kNone = -1;

/// Collects gates, connections and messages. Memory O(messages + route entries).
class TrafficBuilder {
 public:
  static constexpr std::int32_t kNone = network::kNone;

  /// `fabric` must outlive the builder.
  explicit TrafficBuilder(FaultyFabric& fabric, TrafficLayout layout = TrafficLayout::in_full)
      : fabric_(fabric), layout_(layout) {}
  TrafficBuilder(const TrafficBuilder&) = delete;
  TrafficBuilder& operator=(const TrafficBuilder&) = delete;

  [[nodiscard]] const FaultyFabric& fabric() const { return fabric_; }
  /// Pairs of ranks that were to have a connection, but have no route; then what was built is useless.
  [[nodiscard]] const std::vector<Unreachable>& unreachable() const { return unreachable_; }
  [[nodiscard]] std::size_t route_entries() const { return path_links_.size(); }
  [[nodiscard]] std::int32_t gates() const { return static_cast<std::int32_t>(gates_.size()); }
  [[nodiscard]] TrafficLayout layout() const { return layout_; }

  /// Adds a gate that opens by itself at `not_before`, unless something is made to count it down.
  std::int32_t add_gate(double not_before = 0, double delay = 0);
  /// Adds a gate that opens `times` >= 2 times: first when everything that `opens` lists for it has opened, then with
  /// each receipt of a message sent to it. The last receipt counts `last` down (kNone: nothing).
  std::int32_t add_repeating_gate(double not_before, std::int32_t times, std::int32_t last);

  /// Adds the gates, connections and messages of a pairwise all-to-all of three or more members (see PairwiseRounds).
  /// `entry`, `exit`: a gate per member, or kNone.
  void add_pairwise_rounds(const std::vector<std::int32_t>& ranks, bool exchange, double start, double bytes,
                           const std::vector<std::int32_t>& entry, const std::vector<std::int32_t>& exit);

  /// Starts a group. Connections are shared within a group and never between groups.
  void begin_group() { connections_.clear(); }
  /// Returns this group's connection between two ranks, over the fabric's route.
  std::int32_t connection(std::int32_t source, std::int32_t destination);
  /// Adds a connection over one link.
  std::int32_t connection_over(std::int32_t link);

  /// Sends `bytes` when `gate` opens; the receipt counts `receipt` down (kNone: nothing waits for it).
  void send(std::int32_t gate, std::int32_t connection, double bytes, std::int32_t receipt);
  /// Lets the opening of `first`, which opens only once, count `then` down. kNone on either side: does nothing.
  void opens(std::int32_t first, std::int32_t then);

  /// Returns the traffic, and how many of its messages are relays. The builder is empty afterwards.
  std::pair<Traffic, std::int64_t> finish();

 private:
  std::int32_t add_connection(std::int32_t source, std::int32_t destination, std::size_t path_begin);
  void find_unreachable(const PairwiseRounds& rounds);
  std::int64_t link_openings();
  void sort_messages();

  FaultyFabric& fabric_;
  TrafficLayout layout_;
  std::vector<Unreachable> unreachable_;
  std::vector<Connection> list_;
  std::vector<std::int32_t> path_links_;
  std::unordered_map<std::uint64_t, std::int32_t> connections_;
  std::vector<Gate> gates_;
  std::vector<PairwiseRounds> rounds_;
  std::vector<Message> messages_;
  std::vector<std::int32_t> released_by_;  ///< index: message; its gate
  std::vector<std::pair<std::int32_t, std::int32_t>> openings_;
};

/// The traffic of several patterns, and where each pattern lies in it.
struct PatternTraffic {
  Traffic traffic;
  std::int64_t relays = 0;  ///< number of messages that only pass an opening on
  /// Gates of pattern p: from gate_ends[p-1] (0 for the first) up to gate_ends[p].
  std::vector<std::int32_t> gate_ends;
  /// Set where messages that fare alike are folded into one (see folded_sends.h): for each link the one that stands for
  /// it in the paths, and the number of messages beyond those in `traffic`. Elsewhere empty, and 0.
  std::vector<std::int32_t> stands_for;
  std::int64_t folded_away = 0;

  /// Number of messages that the patterns ask for.
  [[nodiscard]] std::int64_t messages() const { return traffic.sent() - relays + folded_away; }
};

/// Builds the traffic. `patterns` must pass check_patterns(). Problems: pairs of ranks that dead links cut off from
/// each other, more than kMaxRouteEntries, or more than kMaxMessagesInMemory. Changes only the detours that `fabric`
/// keeps; it must outlive the traffic, with the same faults, where the layout is compact.
tl::expected<PatternTraffic, Problems> build_traffic(const std::vector<Pattern>& patterns,
                                                     FaultyFabric& fabric,
                                                     TrafficLayout layout = TrafficLayout::repeated);

/// Gates that never open (or less often than they should) because they wait for each other, or for what such gates
/// send. O(messages sent).
std::vector<std::int32_t> closed_gates(const Traffic& traffic);

}  // namespace shardscape::network
