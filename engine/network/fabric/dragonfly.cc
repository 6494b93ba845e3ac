// Dragonflies (Kim et al. 2008, "Technology-driven, highly-scalable dragonfly topology") with minimal
// routing. Hosts are numbered router by router, routers group by group. Group i reaches the k-th other group
// (in ascending order) from its router k modulo the routers of a group.
//
// Wires: hosts to routers; then the routers of each group pairwise; then the pairs of groups.
#include <fmt/format.h>

#include <algorithm>

#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

/// Position of the pair (i, j), i < j, among all pairs of n, row by row.
std::int64_t pair_number(std::int64_t i, std::int64_t j, std::int64_t n) {
  return i * (2 * n - i - 1) / 2 + (j - i - 1);
}

class Dragonfly : public LineGraph {
 public:
  Dragonfly(std::int32_t groups, std::int32_t routers, std::int32_t hosts, WireRate rate, WireRate global)
      : LineGraph(groups * routers * hosts, groups * routers),
        groups_(groups),
        routers_(routers),
        hosts_(hosts) {
    for (std::int32_t i = 0; i < endpoints(); ++i) add_pair(i, endpoints() + i / hosts, rate);
    first_local_ = static_cast<std::int32_t>(wires().size());
    for (std::int32_t g = 0; g < groups; ++g) {
      for (std::int32_t a = 0; a < routers; ++a) {
        for (std::int32_t b = a + 1; b < routers; ++b) add_pair(vertex(g, a), vertex(g, b), rate);
      }
    }
    first_global_ = static_cast<std::int32_t>(wires().size());
    for (std::int32_t a = 0; a < groups; ++a) {
      for (std::int32_t b = a + 1; b < groups; ++b) {
        add_pair(vertex(a, gateway(a, b)), vertex(b, gateway(b, a)), global);
      }
    }
  }

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    const std::int32_t group_hosts = routers_ * hosts_;
    const std::int32_t here = from / group_hosts, there = to / group_hosts;
    const std::int32_t entry = from / hosts_ % routers_, exit = to / hosts_ % routers_;
    path.push_back(base + 2 * from);
    if (here == there) {
      append_local(here, entry, exit, base, path);
    } else {
      append_local(here, entry, gateway(here, there), base, path);
      const auto pair = pair_number(std::min(here, there), std::max(here, there), groups_);
      path.push_back(base + first_global_ + static_cast<std::int32_t>(2 * pair) + (here < there ? 0 : 1));
      append_local(there, gateway(there, here), exit, base, path);
    }
    path.push_back(base + 2 * to + 1);
  }

  /// Blocks that lie inside a router or a group are alike; larger ones are not, since gateways tell groups apart.
  [[nodiscard]] bool alike_by_blocks(std::int32_t endpoints) const override {
    const std::int32_t group_hosts = routers_ * hosts_;
    return hosts_ % endpoints == 0 || (endpoints % hosts_ == 0 && group_hosts % endpoints == 0);
  }

  [[nodiscard]] std::string switch_name(std::int32_t index) const override {
    return fmt::format("router {} of group {}", index % routers_, index / routers_);
  }

 private:
  [[nodiscard]] std::int32_t vertex(std::int32_t group, std::int32_t router) const {
    return endpoints() + group * routers_ + router;
  }
  [[nodiscard]] std::int32_t gateway(std::int32_t group, std::int32_t other) const {
    return (other < group ? other : other - 1) % routers_;
  }
  void append_local(std::int32_t group, std::int32_t a, std::int32_t b, std::int32_t base,
                    std::vector<std::int32_t>& path) const {
    if (a == b) return;
    const std::int64_t pairs = std::int64_t{routers_} * (routers_ - 1) / 2;
    const std::int64_t pair = group * pairs + pair_number(std::min(a, b), std::max(a, b), routers_);
    path.push_back(base + first_local_ + static_cast<std::int32_t>(2 * pair) + (a < b ? 0 : 1));
  }

  std::int32_t groups_;
  std::int32_t routers_;
  std::int32_t hosts_;
  std::int32_t first_local_ = 0;
  std::int32_t first_global_ = 0;
};

}  // namespace

std::unique_ptr<LineGraph> make_dragonfly(const DragonflySpec& spec, std::int32_t size, WireRate rate) {
  const auto routers = static_cast<std::int32_t>(spec.routers_per_group);
  const auto hosts = static_cast<std::int32_t>(spec.hosts_per_router);
  const WireRate global{spec.global_bandwidth.value_or(rate.bandwidth),
                        spec.global_latency.value_or(rate.latency)};
  return std::make_unique<Dragonfly>(size / (routers * hosts), routers, hosts, rate, global);
}

}  // namespace shardscape::network
