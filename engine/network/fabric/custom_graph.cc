// Custom graphs: every next hop is looked up. O(vertices * wires) to build, 4 bytes per (vertex, endpoint).
#include <algorithm>
#include <map>

#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

class CustomGraph : public LineGraph {
 public:
  CustomGraph(const CustomSpec& spec, std::int32_t size)
      : LineGraph(size, static_cast<std::int32_t>(spec.switches)) {
    for (const CustomSpec::Link& link : spec.links) {
      const auto a = static_cast<std::int32_t>(link.a), b = static_cast<std::int32_t>(link.b);
      const WireRate rate{link.bandwidth, link.latency};
      if (link.one_way) {
        add_one_way(a, b, rate);
      } else {
        add_pair(a, b, rate);
      }
    }
    join_opposite_ways();
    find_next_wires();
  }

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    for (std::int32_t at = from; at != to;) {
      const std::int32_t wire = next_wire_[slot(at, to)];
      path.push_back(base + wire);
      at = wires()[static_cast<std::size_t>(wire)].destination;
    }
  }

 private:
  [[nodiscard]] std::int32_t vertices() const { return endpoints() + switches(); }
  [[nodiscard]] std::size_t slot(std::int32_t at, std::int32_t to) const {
    return static_cast<std::size_t>(to) * static_cast<std::size_t>(vertices()) + static_cast<std::size_t>(at);
  }

  void join_opposite_ways();
  void find_next_wires();

  std::vector<std::int32_t> next_wire_;  ///< index: destination endpoint, vertex
};

/// Joins one-way links that are each other's opposite.
void CustomGraph::join_opposite_ways() {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> wire_of;
  for (std::size_t w = 0; w < wires().size(); ++w) {
    const Wire& wire = wires()[w];
    const auto opposite = wire_of.find({wire.destination, wire.source});
    if (opposite != wire_of.end()) join(static_cast<std::int32_t>(w), opposite->second);
    wire_of[{wire.source, wire.destination}] = static_cast<std::int32_t>(w);
  }
}

/// Searches breadth first from every destination, against the direction of the wires. Of several wires that come one
/// hop nearer, the one to the lowest-numbered vertex wins.
void CustomGraph::find_next_wires() {
  const auto count = static_cast<std::size_t>(vertices());
  std::vector<std::vector<std::int32_t>> incoming(count);
  for (std::size_t w = 0; w < wires().size(); ++w) {
    incoming[static_cast<std::size_t>(wires()[w].destination)].push_back(static_cast<std::int32_t>(w));
  }
  next_wire_.assign(count * static_cast<std::size_t>(endpoints()), -1);
  std::vector<std::int32_t> level, next_level;
  for (std::int32_t to = 0; to < endpoints(); ++to) {
    level = {to};
    while (!level.empty()) {
      // So the first wire found for a vertex leads to its lowest-numbered neighbour.
      std::ranges::sort(level);
      next_level.clear();
      for (const std::int32_t at : level) {
        for (const std::int32_t wire : incoming[static_cast<std::size_t>(at)]) {
          const std::int32_t from = wires()[static_cast<std::size_t>(wire)].source;
          if (from == to || next_wire_[slot(from, to)] >= 0) continue;
          next_wire_[slot(from, to)] = wire;
          next_level.push_back(from);
        }
      }
      level.swap(next_level);
    }
  }
}

}  // namespace

std::unique_ptr<LineGraph> make_custom(const CustomSpec& spec, std::int32_t size) {
  return std::make_unique<CustomGraph>(spec, size);
}

}  // namespace shardscape::network
