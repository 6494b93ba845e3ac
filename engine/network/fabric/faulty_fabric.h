// A fabric with sick links: rates after faults, and routes around dead links.
//
// A pair whose fabric route uses a dead link takes a path with the fewest hops over the surviving links. It
// may pass through ranks and switches; among equals the next vertex is the lowest-numbered, hop by hop. All
// other pairs keep their route. A detour is computed once per pair, O(links), and kept until the faults
// change.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"

namespace shardscape::network {

enum class FaultDirections : std::uint8_t { one, both };

/// Adds a fault of `fault.link` and, if asked for, of the opposite link where there is one.
void add_fault(FaultSet& faults, const Fabric& fabric, const LinkFault& fault, FaultDirections directions);

/// Why two ranks can't reach each other.
struct Unreachable {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  /// The dead links that lead out of what the source still reaches; one of them alive would help.
  std::vector<std::int32_t> cut;
};

/// The fabric with faults. It keeps detours once found: one object per thread.
class FaultyFabric {
 public:
  /// Starts without faults. `fabric` must outlive this object.
  explicit FaultyFabric(const Fabric& fabric);

  /// Sets the faults. Link numbers must exist, and derates must be in (0, 1].
  void set_faults(const FaultSet& faults);

  [[nodiscard]] const Fabric& fabric() const { return fabric_; }
  /// Whether there is any fault; whether any link is dead.
  [[nodiscard]] bool faulty() const { return faulty_; }
  [[nodiscard]] bool cut() const { return !dead_links_.empty(); }

  /// Rates under the faults, by link. A dead link keeps its healthy rate, but no route uses it.
  [[nodiscard]] std::span<const double> bytes_per_second() const { return bytes_per_second_; }
  [[nodiscard]] std::span<const double> latency_seconds() const { return latency_; }
  [[nodiscard]] bool dead(std::int32_t link) const {
    return !dead_.empty() && dead_[static_cast<std::size_t>(link)] != 0;
  }

  /// Appends the route in order of travel. Returns false, with `path` unchanged, where dead links leave no route.
  [[nodiscard]] bool append_route(std::int32_t source, std::int32_t destination,
                                  std::vector<std::int32_t>& path);

  /// Why append_route() returned false. O(links).
  [[nodiscard]] Unreachable explain(std::int32_t source, std::int32_t destination) const;
  /// The reason in words: "no way from 0 to 5: all links that lead on are dead (torus: 0 -> 1, torus: 0 -> 4)".
  [[nodiscard]] std::string describe(const Unreachable& unreachable) const;

 private:
  struct Detour {
    std::int32_t begin = 0;
    std::int32_t end = 0;  ///< begin > end: there is no route
  };
  void index_links();
  [[nodiscard]] const Detour& detour(std::int32_t source, std::int32_t destination);
  void measure_distances(std::int32_t source, std::int32_t destination);
  [[nodiscard]] std::int32_t next_link(std::int32_t at) const;

  /// The links of each vertex at one of their ends, in ascending order of the other end.
  struct Adjacency {
    std::vector<std::int32_t> first;  ///< index: vertex; one more entry for the end
    std::vector<std::int32_t> links;
  };
  [[nodiscard]] std::span<const std::int32_t> links_at(const Adjacency& adjacency, std::int32_t vertex) const;
  [[nodiscard]] Adjacency adjacency(std::int32_t Link::*end, std::int32_t Link::*other) const;

  const Fabric& fabric_;
  bool faulty_ = false;
  std::vector<double> bytes_per_second_;
  std::vector<double> latency_;
  std::vector<char> dead_;  ///< index: link; empty where no link is dead
  std::vector<std::int32_t> dead_links_;

  Adjacency out_, in_;  ///< built with the first dead link
  std::unordered_map<std::uint64_t, Detour> detours_;
  std::vector<std::int32_t> detour_links_;
  std::vector<std::int32_t> distance_;  ///< scratch memory: hops to the destination, -1: unknown
  std::vector<std::int32_t> queue_;
};

}  // namespace shardscape::network
