// The fabric made explicit: vertices (ranks, then switches) and directed physical links with stable ids.
//
// Link ids: dimension by dimension, inside it axis by axis, inside it line by line (lowest rank first),
// inside a line as its kind says, in general in the order of the ranks, both directions of a pair in turn.
// Switches are numbered from ranks() up: dimension by dimension, then line by line. Dimensions and axes of
// extent 1 have neither links nor switches.
//
// Routes: lowest dimension first, inside mesh and torus the lowest axis first.
//   ring, torus        the shorter way round, exactly half way in the + direction
//   king_mesh          diagonal steps first: one step in every axis that still differs
//   hypercube          the lowest differing bit first
//   fully_connected    direct
//   switch             up and down
//   fat_tree           up to the lowest common level by FatTreeSpec::up_routing, then down; under `adaptive` the
//                      switches over a block are one vertex, and the wires between a block and them are one link
//   dragonfly          minimal
//   custom             fewest hops, ties to the lowest-numbered next vertex, hop by hop
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/network/fabric/line_graph.h"
#include "engine/spec/fabric_spec.h"

namespace shardscape::network {

struct Link {
  std::int32_t source = 0;       ///< number of a vertex
  std::int32_t destination = 0;  ///< number of a vertex
  std::int32_t dimension = 0;    ///< index in FabricSpec::dimensions
  BytesPerSecond bandwidth;
  Seconds latency;
  std::int32_t strands =
      1;  ///< equal wires that adaptive routing pools: `bandwidth` is that of all, a fault's of one
};

/// The fabric. Immutable; copies share the wiring. Safe to use from several threads.
class Fabric {
 public:
  /// Builds the links. `spec` must validate(). O(links).
  explicit Fabric(const FabricSpec& spec);

  [[nodiscard]] std::int32_t ranks() const { return ranks_; }
  [[nodiscard]] std::int32_t vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const FabricSpec& spec() const { return spec_; }

  /// Appends the link ids of the route between two ranks to `path`, in order of travel. Nothing for source ==
  /// destination.
  void append_route(std::int32_t source, std::int32_t destination, std::vector<std::int32_t>& path) const;
  /// Appends the part of a route that lies along one axis: from a rank to the one that differs from it in that axis
  /// alone, where it has the coordinate of `destination`. Returns that rank. A route is such a leg along every axis,
  /// the innermost first.
  std::int32_t append_leg(std::size_t axis, std::int32_t from, std::int32_t destination,
                          std::vector<std::int32_t>& path) const;

  /// The link from one vertex to another (there is never more than one), or -1. O(links).
  [[nodiscard]] std::int32_t find_link(std::int32_t source, std::int32_t destination) const;
  /// The number behind that of the last link of a link's dimension. O(axes).
  [[nodiscard]] std::int32_t end_of_dimension(std::int32_t link) const;
  /// The link in the opposite direction, or -1 for a one-way link. O(dimensions).
  [[nodiscard]] std::int32_t reverse_of(std::int32_t link) const;

  /// A link as text: "torus2d: 1 -> 5", "rail: 3 -> switch 2".
  [[nodiscard]] std::string link_name(std::int32_t link) const;
  /// A vertex in words: "3", "switch 2" (line 2 of its dimension), "2.leaf 1" (leaf 1 of line 2).
  [[nodiscard]] std::string vertex_name(std::int32_t vertex) const;

  /// One coordinate of the mixed-radix rank number: an axis of a mesh or torus, or a whole dimension.
  struct Axis {
    std::int32_t dimension = 0;
    /// Kind of its lines: ring (also for a torus), mesh (one open line), or the kind of the dimension.
    DimensionKind kind = DimensionKind::ring;
    std::int32_t size = 0;
    std::int32_t stride = 0;      ///< difference in rank between neighbours
    std::int32_t first_link = 0;  ///< number of the axis's first link
    std::int32_t first_switch = 0;
    std::int32_t links_per_line = 0;
    std::int32_t lines = 0;    ///< number of lines, which lie side by side and are wired alike
    std::int32_t sharing = 1;  ///< number of neighbouring ranks (within the stride) that share an adapter
    std::int32_t rails = 0;    ///< number of lines for each `stride` ranks
    std::int32_t lanes = 1;    ///< stride / rails: number of ranks with the same coordinate in one line
  };
  /// The axes, innermost first.
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }

  /// Whether LineGraph says that a line's parts are alike: aligned blocks of so many coordinates; endpoints by any
  /// digit.
  [[nodiscard]] bool alike_by_blocks(std::size_t axis, std::int32_t coordinates) const {
    return wiring_[axis]->alike_by_blocks(coordinates * axes_[axis].lanes);
  }
  [[nodiscard]] bool alike_by_digits(std::size_t axis) const { return wiring_[axis]->alike_by_digits(); }

 private:
  void add_axis(std::int32_t dimension, DimensionKind kind, std::int32_t size, std::int32_t stride);
  void add_line(std::size_t axis, std::int32_t line);

  FabricSpec spec_;
  std::int32_t ranks_ = 0;
  std::int32_t vertices_ = 0;
  std::vector<Axis> axes_;
  std::vector<std::shared_ptr<const LineGraph>> wiring_;  ///< index: axis; the wiring of one line
  /// The place of a rank on an axis. Kept because routes of all pairs are asked for, and would mostly compute
  /// divisions.
  struct Seat {
    std::int32_t coordinate = 0;
    std::int32_t endpoint = 0;    ///< number in its line
    std::int32_t first_link = 0;  ///< first link of its line
  };
  std::vector<Seat> seats_;  ///< index: axis * ranks + rank
  std::vector<Link> links_;
};

}  // namespace shardscape::network
