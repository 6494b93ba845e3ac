// Which round each member of a pairwise all-to-all is in (see PairwiseRounds in traffic.h), for whatever carries
// out traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/network/collectives/traffic.h"

namespace shardscape::network {

class PairwiseTurns {
 public:
  /// Starts before anybody has begun a round. `traffic` must outlive the use.
  void reset(const Traffic& traffic);

  /// Call when the gate opens: returns the round, from 0, that its member begins.
  std::int32_t begin(std::int32_t gate);
  /// The receiver of what that gate sends now, as an index in PairwiseRounds::ranks.
  [[nodiscard]] std::size_t partner(std::int32_t gate) const;
  /// Appends the route of what that gate sends now, and returns the route's latency in seconds.
  double append_route(std::int32_t gate, std::vector<std::int32_t>& path) const;

  /// Call when what the gate sent is received. Calls open(g) for each gate that opens again because of it (the
  /// sender's, the partner's), and finished(g) if the member of gate g has now been sent everything.
  template <class Open, class Finished>
  void receive(std::int32_t gate, const Open& open, const Finished& finished) {
    Member& sender = member(gate);
    const std::int32_t to = rounds_of(gate).first_gate + static_cast<std::int32_t>(partner(gate));
    Member& hearer = member(to);
    const bool early = sender.round != hearer.round;  // the partner has not reached this round yet
    if (early) {
      hearer.early.push_back(sender.round);
    } else {
      hearer.heard = true;
    }
    if (++hearer.receipts == times(to)) finished(to);
    if (!early && ready(to)) open(to);
    sender.delivered = true;
    if (ready(gate)) open(gate);
  }

 private:
  struct Member {
    std::int32_t round = -1;    ///< the round that it has begun last
    std::int32_t receipts = 0;  ///< number of receipts in all rounds
    /// Whether, in this round, its message was received, and it was sent its own.
    bool delivered = false, heard = false;
    std::vector<std::int32_t> early;  ///< later rounds whose message to it has come already
  };
  [[nodiscard]] Member& member(std::int32_t gate) { return members_[static_cast<std::size_t>(gate)]; }
  [[nodiscard]] const PairwiseRounds& rounds_of(std::int32_t gate) const;
  [[nodiscard]] std::int32_t times(std::int32_t gate) const {
    return traffic_->gates[static_cast<std::size_t>(gate)].times;
  }
  [[nodiscard]] bool ready(std::int32_t gate) {
    const Member& m = member(gate);
    return m.delivered && m.heard && m.round + 1 < times(gate);
  }

  const Traffic* traffic_ = nullptr;
  std::vector<Member> members_;  ///< index: gate; empty where the traffic has no rounds
};

}  // namespace shardscape::network
