// The interconnect as a list of dimensions. Rank = sum over dimensions of coordinate * stride, dimension 0
// fastest; inside a shaped dimension shape[0] is fastest. Every dimension is wired the same way in each of
// its lines (the ranks that differ in its coordinate only); kinds compose in any order and number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/base/quantity.h"

namespace shardscape {

/// How the ranks of one line of a dimension are wired. All links are full duplex.
///   ring             each rank to both neighbours, closed
///   mesh             N-d grid of open lines
///   torus            N-d grid of rings
///   fully_connected  one link per pair
///   switch           every rank to one crossbar per line
///   king_mesh        N-d grid, each rank to all that differ by at most 1 in every coordinate
///   hypercube        each rank to those that differ in one bit; the size is a power of two
///   fat_tree         a folded Clos network of equal switches, see FatTreeSpec
///   dragonfly        fully connected groups of fully connected routers, see DragonflySpec
///   custom           listed links between ranks and further vertices, see CustomSpec
enum class DimensionKind : std::uint8_t {
  ring,
  mesh,
  torus,
  fully_connected,
  switched,
  king_mesh,
  hypercube,
  fat_tree,
  dragonfly,
  custom
};
SHARDSCAPE_ENUM_NAMES(DimensionKind, "ring", "mesh", "torus", "fully_connected", "switch", "king_mesh",
                      "hypercube", "fat_tree", "dragonfly", "custom");

/// Decides which of the stack's achieved shares of link bandwidth applies to a dimension.
enum class LinkScope : std::uint8_t { scale_up, scale_out };

/// The scope of DimensionSpec::bandwidth: one link, or all links of one GPU together.
enum class BandwidthBasis : std::uint8_t { link, gpu };

/// How a fat tree chooses among equal ways up.
///   destination  by the digits of the destination (D-mod-k, Zahavi 2012): shift patterns meet no contention
///   ecmp         by a hash of source and destination (see network/fabric/fat_tree.cc): collisions as in an IP fabric
///   adaptive     packet by packet, by what is free: all wires up are one link, which flows share as one
enum class UpRouting : std::uint8_t { destination, ecmp, adaptive };

/// A folded Clos network of switches with `radix` ports. A leaf has `oversubscription` ports down for each
/// port up, as many of both as fit (what is left over of its ports stays empty: 2:1 on 64 ports is 42 down
/// and 21 up), the levels between half and half, the top level all ports down. The tree is filled from the
/// left, and only the leaves (and the levels) that its ranks need are there.
struct FatTreeSpec {
  /// Levels of switches, 1 .. 8; of an open dimension the most that may be used.
  std::int64_t levels = 2;
  std::int64_t radix = 0;       ///< ports of a switch, >= 2
  double oversubscription = 1;  ///< ports down per port up, >= 1
  UpRouting up_routing = UpRouting::destination;
  std::optional<BytesPerSecond> uplink_bandwidth;  ///< absent: as of the ranks' links; the latency likewise
  std::optional<Seconds> uplink_latency;

  /// Ports of a leaf towards ranks (all of its ports in a tree of one level); nothing where the ratio does not give
  /// whole ports.
  [[nodiscard]] std::optional<std::int64_t> leaf_ports_down() const;
  /// Ports down that the ratio gives for `up` ports up, or nothing where that is no whole number.
  [[nodiscard]] std::optional<std::int64_t> whole_ports_down(std::int64_t up) const;
  /// Ports of a leaf towards the next level; those towards ranks must be whole.
  [[nodiscard]] std::int64_t leaf_ports_up() const;
  /// Ranks (or shared adapters) that a tree of `with_levels` levels holds; the leaf ports must be whole.
  [[nodiscard]] std::int64_t capacity(std::int64_t with_levels) const;
  /// The least number of levels that holds `endpoints`; a single leaf holds as many as its ports down.
  [[nodiscard]] std::int64_t levels_for(std::int64_t endpoints) const;
  friend bool operator==(const FatTreeSpec&, const FatTreeSpec&) = default;
};

/// Routers of a group are linked pairwise, and so is each pair of groups by one link: group i meets the other
/// groups in ascending order at its routers 0, 1, .. in turn. Routing is minimal: at most one link inside the
/// source's group, one between groups, one inside the destination's (Kim et al. 2008).
struct DragonflySpec {
  std::optional<std::int64_t> groups;  ///< absent: the size divided by the hosts of a group
  std::int64_t routers_per_group = 0;
  std::int64_t hosts_per_router = 0;
  std::optional<BytesPerSecond> global_bandwidth;  ///< absent: as of the other links; the latency likewise
  std::optional<Seconds> global_latency;
  friend bool operator==(const DragonflySpec&, const DragonflySpec&) = default;
};

/// Vertices 0 .. size-1 are the ranks of a line, size .. size+switches-1 are extra. Routes have the fewest
/// hops; among equals the next vertex is the lowest-numbered, hop by hop; they may pass through ranks.
struct CustomSpec {
  struct Link {
    std::int64_t a = 0;
    std::int64_t b = 0;
    bool one_way = false;  ///< the link goes from a to b only
    BytesPerSecond bandwidth;
    Seconds latency;
    friend bool operator==(const Link&, const Link&) = default;
  };
  std::int64_t switches = 0;
  std::vector<Link> links;
  friend bool operator==(const CustomSpec&, const CustomSpec&) = default;
};

struct DimensionSpec {
  std::string name;
  DimensionKind kind = DimensionKind::switched;
  std::vector<std::int64_t> shape;  ///< one entry per axis for mesh, torus, king_mesh; else one entry
  BytesPerSecond bandwidth;         ///< per direction, see `basis`; unused by custom
  Seconds latency;                  ///< latency of each link; unused by custom
  LinkScope scope = LinkScope::scale_up;
  BandwidthBasis basis = BandwidthBasis::link;

  /// switch and fat_tree. A node is the ranks of all dimensions further in. Without `nics_per_node` every GPU
  /// has an adapter of its own; with fewer adapters than GPUs neighbouring GPUs share one, with more each GPU
  /// has several and drives them as one. `bandwidth` is one adapter's.
  std::optional<std::int64_t> nics_per_node = std::nullopt;
  /// fat_tree: separate trees that the adapters of a node are dealt over; default: one per adapter.
  std::optional<std::int64_t> rails = std::nullopt;
  /// The innermost switch of a cluster: jobs take its GPUs in multiples of this, and the same number of every
  /// switch (FabricTemplate::instantiate). A fabric of a given size has none.
  std::optional<std::int64_t> gpus_per_tray = std::nullopt;
  /// switch and fat_tree: the switches reduce (NVLink SHARP, InfiniBand SHARP).
  bool in_network_reduction = false;

  FatTreeSpec fat_tree = {};
  DragonflySpec dragonfly = {};
  CustomSpec custom = {};

  /// Product of the shape, capped where it would overflow.
  [[nodiscard]] std::int64_t size() const;
  /// Whether the kind has one shape entry per axis: mesh, torus, king_mesh.
  [[nodiscard]] bool shaped() const;
  /// Number of links of each rank, or nothing where ranks differ.
  [[nodiscard]] std::optional<std::int64_t> links_per_rank() const;
  friend bool operator==(const DimensionSpec&, const DimensionSpec&) = default;
};

/// How the GPUs of a node reach a dimension of kind switch or fat_tree: GPU i by adapter i / sharing, adapter
/// j in rail j % rails.
struct NodePorts {
  std::int64_t sharing = 1;  ///< GPUs per adapter
  std::int64_t rails = 1;    ///< switches or trees side by side
  double width = 1;          ///< adapters per GPU where there are several

  /// Ports of a node of `gpus` ranks. The dimension's settings must be valid.
  static NodePorts of(const DimensionSpec& dimension, std::int64_t gpus);
};

/// A fabric of exactly size() ranks. Cluster files may leave one size open ("fill"); see FabricTemplate.
struct FabricSpec {
  std::string name;
  std::vector<DimensionSpec> dimensions;
  /// Of a cluster that states no bandwidth of its scale-up network: what the links of its device have, and what the
  /// innermost dimension has by them. Zeros where it states one.
  BytesPerSecond device_links = {}, by_device_links = {};

  [[nodiscard]] std::int64_t size() const;
  /// Every broken rule, at fields such as "dimensions[1].links[3]". Settings without effect are broken rules.
  [[nodiscard]] Problems validate() const;
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

/// A fabric whose outermost dimension may grow with the number of GPUs (kFill as its only shape entry).
struct FabricTemplate {
  static constexpr std::int64_t kFill = 0;
  FabricSpec fabric;

  [[nodiscard]] bool open() const;
  /// The cluster whose jobs take so many GPUs of every innermost switch (an NVLink domain), no more than it has
  /// and whole trays of them. Problems, at gpus_per_domain, where that can't be.
  [[nodiscard]] FabricTemplate with_domain(std::int64_t gpus_per_domain, Problems& problems) const;
  /// The fabric for `gpus` ranks. The open dimension takes gpus / (product of the others); fewer GPUs than one
  /// innermost switch, fat tree or fully-connected dimension occupy part of it. Where they are more but no multiple,
  /// and the switch has trays, every switch gives as many as divide them, the most that whole trays make up. Dimensions
  /// of size 1 are dropped, levels of a fat tree that its ranks don't need likewise. Problems where nothing fits.
  [[nodiscard]] FabricSpec instantiate(std::int64_t gpus, Problems& problems) const;
};

}  // namespace shardscape
