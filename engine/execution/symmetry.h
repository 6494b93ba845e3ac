// Which parts of a machine do the same at the same time.
//
// Objects (ranks, communicators, gates of calls, connections, links) of one class differ in nothing that their course
// depends on: they are alike themselves, and whom they meet is, one for one, of the same classes (base/refinement.h):
//
//   ranks          run one sequence, enter and leave calls by the same classes of gates on each lane, and have the same
//                  classes of connections on each channel
//   communicators  have calls of the same copies, with as many gates of each class
//   gates          send messages of the same bytes over the same classes of connections to the same classes of gates,
//                  in one order; and are counted down by the same classes
//   connections    have one latency, a path over the same classes of links and the same classes of users
//   links          have one rate and carry the same number of connections of each class
//
// So all gates of a class are of like calls of like communicators, and the first of them is one of a communicator that
// stands for its class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/refinement.h"
#include "engine/execution/program.h"

namespace shardscape::execution {

/// A number of the programs as an index.
constexpr std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

/// Numbers the gates of all calls consecutively.
class GateIndex {
 public:
  explicit GateIndex(const Programs& programs);
  /// The number of the first gate of a call.
  [[nodiscard]] std::size_t first(std::size_t communicator, std::size_t call) const {
    return bases_[calls_[communicator] + call];
  }
  /// The number of gates of all calls.
  [[nodiscard]] std::size_t size() const { return bases_.back(); }

 private:
  std::vector<std::size_t> calls_;  ///< by communicator: number of calls before its own
  std::vector<std::size_t> bases_;  ///< by call: number of gates before its own; at the end, of all gates
};

/// The classes of each kind of object.
struct LikeObjects {
  Classes ranks, communicators, gates, wires, links;
  /// By class of links, for the link that stands for it: the classes of the connections on it, each as often as it has
  /// connections there; ascending.
  std::vector<std::vector<std::int32_t>> wires_on_link;
};

/// Whether a parcel through the connection is received at once, inside the call that sends it, and meets no other.
inline bool is_instant(const network::Connection& wire) {
  return wire.path_begin == wire.path_end && wire.latency <= 0;
}

/// Finds classes of like objects; nothing where more than half of the ranks differ, or where two objects of one class
/// count down the same gate or use the same connection.
std::optional<LikeObjects> find_like_objects(const Programs& programs, const GateIndex& gates,
                                             std::span<const double> link_bytes_per_second);

}  // namespace shardscape::execution
