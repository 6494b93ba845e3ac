// Lone rings: calls along a ring that shares no link with other traffic, whose times follow from when its members
// enter.
//
// Where each connection of a ring has all its links to itself (no other connection's path names them), its rate is
// what its narrowest link gives, whatever else happens. A member then sends its messages over it one after the other,
// and with e_i the time at which member i enters, p its predecessor,
//
//     opens(i, 0)  = e_i,      opens(i, s) = max(opens(i, s-1), received(p, s-1))
//     drained(i, s) = max(opens(i, s), drained(i, s-1)) + bytes / rate_i,
//     received(i, s) = drained(i, s) + latency_i
//
// where drained(i, -1) is that of the ring before. Member i leaves when it has received all: max(e_i, received(p,
// S-1)). These are the rules of program.h and network/collectives/traffic.h for such a ring, in the arithmetic of
// network/flows/fluid.h, so that the times are those of executing each message. With S >= n - 1 steps nobody leaves
// before all have entered, so that a call is computed when its last member enters. Most messages of a training step are
// of tensor groups inside a node, which are such rings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/execution/program.h"

namespace shardscape::execution {

class LoneRings {
 public:
  /// Finds the lone rings of `programs`, which must outlive this use. O(size of the programs).
  void reset(const Programs& programs, std::span<const double> link_bytes_per_second);

  /// Makes hold() false for all communicators.
  void reset() { groups_.clear(); }

  /// Whether all calls of the communicator are lone rings, whose messages must then not be sent one by one.
  [[nodiscard]] bool hold(std::int32_t communicator) const {
    return !groups_.empty() && !groups_[static_cast<std::size_t>(communicator)].calls.empty();
  }
  /// Notes that a member enters, not earlier than those before it. True for the last member: leaves() then gives the
  /// times at which members leave, and the call is over.
  bool enter(std::int32_t communicator, std::int32_t call, std::size_t member, double time);
  /// Times at which members leave the call that was completed last, in seconds, by member.
  [[nodiscard]] std::span<const double> leaves() const { return leaves_; }
  /// Number of messages sent and received in lone rings since reset().
  [[nodiscard]] std::int64_t messages() const { return messages_; }

 private:
  struct Hop {
    double seconds = 0;  ///< seconds of a message on the narrowest link
    double latency = 0;
    std::int32_t member = 0;
    std::int32_t connection = 0;
  };
  /// The ring of a call: the hop from each member to the next, in ring order.
  struct Ring {
    std::vector<Hop> hops;
    std::int32_t steps = 0;
  };
  struct Group {
    std::vector<Ring> calls;    ///< empty: the communicator's calls are not lone rings
    std::vector<double> enter;  ///< time at which each member entered
    std::size_t inside = 0;
  };
  [[nodiscard]] std::vector<double> lone_rates(std::span<const double> link_bytes_per_second) const;
  static bool find_ring(const Communicator& group, const CallTraffic& call, const network::Traffic& wires,
                        std::span<const double> lone_rate, Ring& ring);

  const Programs* programs_ = nullptr;
  std::vector<Group> groups_;    ///< by communicator
  std::vector<double> drained_;  ///< by connection: end of its latest message
  std::vector<double> open_, leaves_;
  std::int64_t messages_ = 0;
};

}  // namespace shardscape::execution
