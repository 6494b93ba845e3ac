// What is to be sent: connections over fixed routes, messages on them, and the gates that say when.
//
// A connection carries its messages one after the other in the order in which they become ready; the next
// starts when the last has drained. A message is received one path latency after it has drained; latency
// occupies no bandwidth. The receipt of a message counts down a gate; a gate whose count is zero opens, not
// before its earliest time and after its own delay, and releases the messages that wait behind it.
//
// A gate may open several times and send its messages anew each time: the steps of a ring are all alike, and
// one gate per rank stands for them, so that a ring of n ranks takes O(n) memory and not O(n^2). Each receipt
// of a message that names such a gate is one of its turns: the first opening waits for other gates only
// (`waiting`), every further one for a receipt, and the last receipt, after which nothing is left to send,
// counts down `next_gate`. Receipts that come before the first opening wait for it.
//
// The rounds of a pairwise all-to-all are turns, too, of one gate, connection and message per member, with
// another partner and so another route in each (PairwiseRounds): O(n) instead of O(n^2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardscape::network {

struct Connection {
  std::int32_t source = 0;       ///< number of a rank
  std::int32_t destination = 0;  ///< number of a rank
  std::int32_t path_begin = 0;   ///< its route is [path_begin, path_end) in Traffic::path_links
  std::int32_t path_end = 0;     ///< an empty path delivers at once
  double latency = 0;            ///< seconds, summed over the path
};

struct Message {
  std::int32_t connection = 0;
  std::int32_t gate = -1;  ///< the gate that its receipt counts down; -1: none
  double bytes = 0;
};

struct Gate {
  std::int32_t waiting = 0;        ///< number of receipts (and openings of other gates) still missing
  std::int32_t first_message = 0;  ///< releases messages [first_message, first_message + messages)
  std::int32_t messages = 0;
  /// Gate that is counted down when this one opens (times > 1: see above); -1: none.
  std::int32_t next_gate = -1;
  double not_before = 0;   ///< seconds; it opens no earlier
  double delay = 0;        ///< seconds from the last count (or not_before) to the opening
  std::int32_t times = 1;  ///< number of openings; where there are several, delay is 0
  /// Index in Traffic::rounds if the openings are rounds of a pairwise all-to-all; else -1.
  std::int32_t rounds = -1;
};

class FaultyFabric;

/// A pairwise all-to-all of n members: gate first_gate + i opens n - 1 times, in round r (from 0) to send its one
/// message from member i to partner(i, r). It opens again when both that message and the one that it is sent in the
/// same round are received. Its next_gate is counted down when it has been sent everything.
struct PairwiseRounds {
  std::vector<std::int32_t> ranks;  ///< rank of each member
  /// Partners by exclusive or (members are a power of two); false: by shifts.
  bool exchange = false;
  std::int32_t first_gate = 0;
  FaultyFabric* fabric = nullptr;  ///< knows the routes; must outlive the traffic

  [[nodiscard]] std::size_t partner(std::size_t member, std::int32_t round) const {
    const auto distance = static_cast<std::size_t>(round) + 1;
    return exchange ? member ^ distance : (member + distance) % ranks.size();
  }
  [[nodiscard]] std::size_t member(std::int32_t gate) const {
    return static_cast<std::size_t>(gate - first_gate);
  }
};

struct Traffic {
  std::vector<Connection> connections;
  std::vector<std::int32_t> path_links;  ///< numbers of links
  std::vector<Message> messages;         ///< those of one gate are consecutive
  std::vector<Gate> gates;               ///< gates with waiting = 0 open by themselves
  std::vector<PairwiseRounds> rounds;    ///< their connections have the routes of the first round

  [[nodiscard]] std::span<const std::int32_t> path(const Connection& connection) const {
    return std::span(path_links)
        .subspan(static_cast<std::size_t>(connection.path_begin),
                 static_cast<std::size_t>(connection.path_end - connection.path_begin));
  }
  /// Number of messages sent, each counted as often as its gate opens.
  [[nodiscard]] std::int64_t sent() const {
    std::int64_t count = 0;
    for (const Gate& gate : gates) count += std::int64_t{gate.messages} * gate.times;
    return count;
  }
};

/// Is told when each gate opens (seconds). Gates may also wait for the observer, as what a device does next is decided
/// when it is free.
class GateObserver {
 public:
  virtual ~GateObserver() = default;
  virtual void gate_opened(double time, std::int32_t gate) = 0;
  /// Called when all else of an instant has happened, until it returns -1: a gate to be counted down now.
  virtual std::int32_t choose_gate() { return -1; }
};

/// The outcome of a simulation.
struct FlowResult {
  double completion_time = 0;  ///< seconds: time of the last receipt
  std::int64_t events = 0;     ///< number of instants at which rates were solved anew
  /// Number of messages received; fewer than sent where gates wait for each other in a circle.
  std::int64_t received = 0;
};

}  // namespace shardscape::network
