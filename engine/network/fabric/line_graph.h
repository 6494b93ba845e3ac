// The wiring of one line of a dimension: what the fabric repeats for every line.
//
// Vertices 0 .. endpoints-1 are the places of ranks, the switches follow. Wires are directed; ids are
// positions in wires(). Routes are fixed and loop-free.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/spec/fabric_spec.h"

namespace shardscape::network {

/// The bandwidth of a wire, and its latency.
struct WireRate {
  BytesPerSecond bandwidth;
  Seconds latency;
};

struct Wire {
  std::int32_t source = 0;
  std::int32_t destination = 0;
  WireRate rate;
  std::int32_t reverse = -1;  ///< number of the opposite wire, or -1 where there is none
  std::int32_t strands = 1;   ///< so many equal ones are pooled; `rate.bandwidth` is that of all
};

class LineGraph {
 public:
  LineGraph(std::int32_t endpoints, std::int32_t switches) : endpoints_(endpoints), switches_(switches) {}
  virtual ~LineGraph() = default;
  LineGraph(const LineGraph&) = delete;
  LineGraph& operator=(const LineGraph&) = delete;

  [[nodiscard]] std::int32_t endpoints() const { return endpoints_; }
  [[nodiscard]] std::int32_t switches() const { return switches_; }
  [[nodiscard]] const std::vector<Wire>& wires() const { return wires_; }

  /// Appends `base` + number of every wire from one endpoint to another, in order of travel; from != to.
  virtual void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                            std::vector<std::int32_t>& path) const = 0;
  // Which parts of a line are alike: routes between endpoints of one part use no wire that routes inside of another
  // part use, and the number of an endpoint moved to another part moves its routes, wire by wire, to wires of the
  // same rates. (tiles.h)
  /// Aligned blocks of so many endpoints.
  [[nodiscard]] virtual bool alike_by_blocks(std::int32_t /*endpoints*/) const { return alike_by_digits(); }
  /// The same for endpoints that agree in some digit of their numbers, for any digit.
  [[nodiscard]] virtual bool alike_by_digits() const { return false; }

  /// The name of a switch within its line ("leaf 3"); empty where it is the only one.
  [[nodiscard]] virtual std::string switch_name(std::int32_t index) const {
    return fmt::format("switch {}", index);
  }

 protected:
  /// Adds wires in both directions; their numbers follow each other. `rate` is that of one of the strands.
  void add_pair(std::int32_t a, std::int32_t b, WireRate rate, std::int32_t strands = 1) {
    const auto id = static_cast<std::int32_t>(wires_.size());
    rate.bandwidth *= static_cast<double>(strands);
    wires_.push_back({a, b, rate, id + 1, strands});
    wires_.push_back({b, a, rate, id, strands});
  }
  void add_one_way(std::int32_t a, std::int32_t b, WireRate rate) { wires_.push_back({a, b, rate, -1}); }
  /// Makes two wires each other's reverse.
  void join(std::int32_t a, std::int32_t b) {
    wires_[static_cast<std::size_t>(a)].reverse = b;
    wires_[static_cast<std::size_t>(b)].reverse = a;
  }

 private:
  std::int32_t endpoints_;
  std::int32_t switches_;
  std::vector<Wire> wires_;
};

// Functions that make lines; each kind has a file of its own.
std::unique_ptr<LineGraph> make_ring(std::int32_t size, WireRate rate);
std::unique_ptr<LineGraph> make_open_line(std::int32_t size, WireRate rate);
std::unique_ptr<LineGraph> make_full_mesh(std::int32_t size, WireRate rate);
/// `sharing` > 1: so many neighbouring endpoints share an adapter, and adapters are wired to the switch.
std::unique_ptr<LineGraph> make_crossbar(std::int32_t endpoints, std::int32_t sharing, WireRate rate);
std::unique_ptr<LineGraph> make_king_mesh(const std::vector<std::int64_t>& shape, WireRate rate);
std::unique_ptr<LineGraph> make_hypercube(std::int32_t size, WireRate rate);
std::unique_ptr<LineGraph> make_fat_tree(const FatTreeSpec& spec, std::int32_t endpoints,
                                         std::int32_t sharing, WireRate rate, WireRate uplink);
std::unique_ptr<LineGraph> make_dragonfly(const DragonflySpec& spec, std::int32_t size, WireRate rate);
std::unique_ptr<LineGraph> make_custom(const CustomSpec& spec, std::int32_t size);

/// As path.push_back(wire), where the wire has a name: for a value without one g++ makes each push a call, and routes
/// are most of what a large fabric costs.
inline void append_wire(std::vector<std::int32_t>& path, const std::int32_t wire) { path.push_back(wire); }

}  // namespace shardscape::network
