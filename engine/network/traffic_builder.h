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

#include "engine/network/faulty_fabric.h"
#include "engine/network/patterns.h"
#include "engine/network/traffic.h"

namespace shardscape::network {

/// No gate, connection or message.
inline constexpr std::int32_t kNone = -1;

/// Low level: gates, connections, messages. Memory O(messages + route entries).
class TrafficBuilder {
 public:
  static constexpr std::int32_t kNone = network::kNone;

  /// `fabric` must outlive the builder.
  explicit TrafficBuilder(FaultyFabric& fabric, TrafficLayout layout = TrafficLayout::in_full)
      : fabric_(fabric), layout_(layout) {}
  TrafficBuilder(const TrafficBuilder&) = delete;
  TrafficBuilder& operator=(const TrafficBuilder&) = delete;

  [[nodiscard]] const FaultyFabric& fabric() const { return fabric_; }
  /// Pairs of ranks that asked for a connection and cannot have one; what was built is worthless then.
  [[nodiscard]] const std::vector<Unreachable>& unreachable() const { return unreachable_; }
  [[nodiscard]] std::size_t route_entries() const { return path_links_.size(); }
  [[nodiscard]] std::int32_t gates() const { return static_cast<std::int32_t>(gates_.size()); }
  [[nodiscard]] TrafficLayout layout() const { return layout_; }

  /// A gate that opens on its own at `not_before` unless something is made to count it down.
  std::int32_t add_gate(double not_before = 0, double delay = 0);
  /// A gate that opens `times` >= 2 times: at first when what `opens` names here has opened, then with each
  /// receipt of a message sent to it; the last receipt counts `last` down (kNone: nothing).
  std::int32_t add_repeating_gate(double not_before, std::int32_t times, std::int32_t last);

  /// The gates, connections and messages of a pairwise all-to-all of three members or more (see PairwiseRounds).
  /// `entry`, `exit`: a gate per member, or kNone.
  void add_pairwise_rounds(const std::vector<std::int32_t>& ranks, bool exchange, double start, double bytes,
                           const std::vector<std::int32_t>& entry, const std::vector<std::int32_t>& exit);

  /// Connections are shared within a group and never between groups.
  void begin_group() { connections_.clear(); }
  /// The connection of this group between two ranks, over the fabric's route.
  std::int32_t connection(std::int32_t source, std::int32_t destination);
  /// A new connection over one link.
  std::int32_t connection_over(std::int32_t link);

  /// Sends `bytes` when `gate` opens; the receipt counts `receipt` down (kNone: nothing waits for it).
  void send(std::int32_t gate, std::int32_t connection, double bytes, std::int32_t receipt);
  /// The opening of `first`, which opens once, counts `then` down. kNone on either side: nothing happens.
  void opens(std::int32_t first, std::int32_t then);

  /// The result, and how many of its messages are relays. The builder is empty afterwards.
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
  std::vector<std::int32_t> released_by_;  ///< gate of each message
  std::vector<std::pair<std::int32_t, std::int32_t>> openings_;
};

/// The traffic of several patterns, and where each of them lies in it.
struct PatternTraffic {
  Traffic traffic;
  std::int64_t relays = 0;              ///< messages that only pass an opening on
  std::vector<std::int32_t> gate_ends;  ///< gates of pattern p: from gate_ends[p-1] (0) up to gate_ends[p]
  /// Where messages that fare alike are folded into one (see folded_sends.h): by link id, the link that stands for it
  /// in the paths, and the messages beyond those that are in `traffic`. Empty, and 0, elsewhere.
  std::vector<std::int32_t> stands_for;
  std::int64_t folded_away = 0;

  /// Messages that the patterns ask for.
  [[nodiscard]] std::int64_t messages() const { return traffic.sent() - relays + folded_away; }
};

/// `patterns` must pass check_patterns(). Problems: pairs of ranks that dead links cut off from each other,
/// more than kMaxRouteEntries, or more than kMaxMessagesInMemory. Changes nothing but the detours that `fabric` keeps,
/// which must outlive the traffic with the same faults where the layout is compact.
tl::expected<PatternTraffic, Problems> build_traffic(const std::vector<Pattern>& patterns,
                                                     FaultyFabric& fabric,
                                                     TrafficLayout layout = TrafficLayout::repeated);

/// Gates that never open (or not as often as they should) because they wait for each other, or for what is
/// sent by gates that do. O(messages sent).
std::vector<std::int32_t> closed_gates(const Traffic& traffic);

}  // namespace shardscape::network
