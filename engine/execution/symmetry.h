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

/// Numbers the gates of all calls through.
class GateIndex {
 public:
  explicit GateIndex(const Programs& programs);
  /// Of the first gate of a call.
  [[nodiscard]] std::size_t first(std::size_t communicator, std::size_t call) const {
    return bases_[calls_[communicator] + call];
  }
  /// Of all calls.
  [[nodiscard]] std::size_t size() const { return bases_.back(); }

 private:
  std::vector<std::size_t> calls_;  ///< by communicator: calls before its own
  std::vector<std::size_t> bases_;  ///< by call: gates before its own; then those of all
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

/// A parcel through it is received within the call that sends it, and meets nothing.
inline bool is_instant(const network::Connection& wire) {
  return wire.path_begin == wire.path_end && wire.latency <= 0;
}

/// Objects that look alike; nothing where more than half of the ranks differ. O(rounds * size of the programs), the
/// rounds being at most as many as the steps from one difference to the rank that it reaches last.
std::optional<Classes> find_classes(const Programs& programs, const GateIndex& gates,
                                    std::span<const double> link_bytes_per_second);

}  // namespace shardscape::execution
