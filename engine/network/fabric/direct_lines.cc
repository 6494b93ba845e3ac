// Fully connected lines and crossbars.
#include <fmt/format.h>

#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

/// A wire pair for every two endpoints i < j; numbered row by row.
class FullMesh : public LineGraph {
 public:
  FullMesh(std::int32_t size, WireRate rate) : LineGraph(size, 0), size_(size) {
    for (std::int32_t i = 0; i < size; ++i) {
      for (std::int32_t j = i + 1; j < size; ++j) add_pair(i, j, rate);
    }
  }

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    const std::int64_t low = from < to ? from : to;
    const std::int64_t high = from < to ? to : from;
    const std::int64_t pair = low * (2 * std::int64_t{size_} - low - 1) / 2 + (high - low - 1);
    append_wire(path, base + static_cast<std::int32_t>(2 * pair) + (from < to ? 0 : 1));
  }
  /// True because every pair of endpoints has wires of its own.
  [[nodiscard]] bool alike_by_digits() const override { return true; }

 private:
  std::int32_t size_;
};

/// Pair i joins endpoint i to its adapter or the switch; the pairs of shared adapters to the switch follow.
/// An adapter's port limits the traffic of its endpoints, so their own wires to it carry as much and add no
/// latency.
class Crossbar : public LineGraph {
 public:
  Crossbar(std::int32_t endpoints, std::int32_t sharing, WireRate rate)
      : LineGraph(endpoints, sharing == 1 ? 1 : 1 + endpoints / sharing), sharing_(sharing) {
    if (sharing == 1) {
      for (std::int32_t i = 0; i < endpoints; ++i) add_pair(i, endpoints, rate);
      return;
    }
    const std::int32_t adapters = endpoints / sharing;
    for (std::int32_t i = 0; i < endpoints; ++i) {
      add_pair(i, endpoints + 1 + i / sharing, {rate.bandwidth, Seconds(0)});
    }
    for (std::int32_t a = 0; a < adapters; ++a) add_pair(endpoints + 1 + a, endpoints, rate);
  }

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    append_wire(path, base + 2 * from);
    if (sharing_ > 1) {
      const std::int32_t first = base + 2 * endpoints();
      append_wire(path, first + 2 * (from / sharing_));
      append_wire(path, first + 2 * (to / sharing_) + 1);
    }
    append_wire(path, base + 2 * to + 1);
  }

  /// Every endpoint has wires of its own, and no digit tells apart endpoints that share an adapter (tiles.h).
  [[nodiscard]] bool alike_by_digits() const override { return true; }

  [[nodiscard]] std::string switch_name(std::int32_t index) const override {
    if (sharing_ == 1) return {};
    return index == 0 ? "switch" : fmt::format("adapter {}", index - 1);
  }

 private:
  std::int32_t sharing_;
};

}  // namespace

std::unique_ptr<LineGraph> make_full_mesh(std::int32_t size, WireRate rate) {
  return std::make_unique<FullMesh>(size, rate);
}

std::unique_ptr<LineGraph> make_crossbar(std::int32_t endpoints, std::int32_t sharing, WireRate rate) {
  return std::make_unique<Crossbar>(endpoints, sharing, rate);
}

}  // namespace shardscape::network
