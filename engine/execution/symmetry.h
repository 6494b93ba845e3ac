// Which parts of a machine do the same at the same time.
//
// Objects (ranks, communicators, gates of calls, connections, links) of one class differ in nothing that their
// course depends on: they are alike themselves, and what they meet is, one for one, of the same classes. Classes are
// looked for by colour refinement (Berkholz, Bonsma and Grohe 2017, section 2, with hashes for colours): all alike at
// first, a round tells apart what meets different colours, until a round finds nothing new. Every property is then
// checked one by one (folding.h), so that a clash of hashes can waste time but never change a result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/execution/program.h"

namespace shardscape::execution {

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

/// Classes of each kind, numbered in the order of their first members.
struct Classes {
  struct Kind {
    std::vector<std::int32_t> of;     ///< by object
    std::vector<std::int32_t> first;  ///< by class: its first object, which stands for the class
    [[nodiscard]] bool stands(std::size_t object) const {
      return static_cast<std::size_t>(first[static_cast<std::size_t>(of[object])]) == object;
    }
    [[nodiscard]] std::size_t representative(std::size_t object) const {
      return static_cast<std::size_t>(first[static_cast<std::size_t>(of[object])]);
    }
  };
  Kind ranks, communicators, gates, wires, links;
};

/// Whether a parcel through the connection is received at once, inside the call that sends it, and meets no other.
inline bool is_instant(const network::Connection& wire) {
  return wire.path_begin == wire.path_end && wire.latency <= 0;
}

/// Finds classes of like objects; nothing where more than half of the ranks differ. O(rounds * size of the programs);
/// there are at most as many rounds as steps from a difference to the last rank that it reaches.
std::optional<Classes> find_classes(const Programs& programs, const GateIndex& gates,
                                    std::span<const double> link_bytes_per_second);

}  // namespace shardscape::execution
