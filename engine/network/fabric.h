// The fabric made explicit: vertices (ranks, then switches) and directed physical links with stable ids.
//
// Link ids: dimension by dimension, inside it axis by axis, inside it line by line (lowest rank first),
// inside a line in the order of the ranks, both directions of a pair in turn. Routes: lowest dimension first,
// lowest axis first; on a ring the shorter way round, exactly half way in the + direction; over a switch up
// and down; fully connected direct.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/spec/fabric.h"

namespace shardscape::network {

struct Link {
  std::int32_t source = 0;       ///< vertex
  std::int32_t destination = 0;  ///< vertex
  std::int32_t dimension = 0;    ///< index in FabricSpec::dimensions
  BytesPerSecond bandwidth;
  Seconds latency;
};

class Fabric {
 public:
  /// `spec` must validate(). O(links).
  explicit Fabric(const FabricSpec& spec);

  [[nodiscard]] std::int32_t ranks() const { return ranks_; }
  [[nodiscard]] std::int32_t vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const FabricSpec& spec() const { return spec_; }

  /// Appends the link ids of the route between two ranks to `path`, in order of travel. Nothing for source ==
  /// destination.
  void append_route(std::int32_t source, std::int32_t destination, std::vector<std::int32_t>& path) const;

  /// "torus2d: 1 -> 5", "rail: 3 -> switch 2".
  [[nodiscard]] std::string link_name(std::int32_t link) const;
  [[nodiscard]] std::string vertex_name(std::int32_t vertex) const;

  /// One coordinate of the mixed-radix rank number: an axis of a shaped dimension, or a whole dimension.
  struct Axis {
    std::int32_t dimension = 0;
    DimensionKind kind = DimensionKind::ring;  ///< ring, mesh (one open line), fully_connected or switched
    std::int32_t size = 0;
    std::int32_t stride = 0;      ///< rank distance between neighbours
    std::int32_t first_link = 0;  ///< id of the axis's first link
    std::int32_t first_switch = 0;
    std::int32_t links_per_line = 0;
  };
  /// Innermost first.
  [[nodiscard]] const std::vector<Axis>& axes() const { return axes_; }

 private:
  void add_axis(std::int32_t dimension, DimensionKind kind, std::int32_t size, std::int32_t stride);
  void add_line(const Axis& axis, std::int32_t line);
  void append_axis_route(const Axis& axis, std::int32_t line, std::int32_t from, std::int32_t to,
                         std::vector<std::int32_t>& path) const;

  FabricSpec spec_;
  std::int32_t ranks_ = 0;
  std::int32_t vertices_ = 0;
  std::vector<Axis> axes_;
  std::vector<Link> links_;
};

}  // namespace shardscape::network
