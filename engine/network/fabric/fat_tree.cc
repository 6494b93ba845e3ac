// Fat trees as extended generalised fat trees (Oehring et al. 1995, "On generalized fat trees").
//
// Endpoint numbers have one digit per level: m_1 children of a leaf, m_i of a switch of level i. A switch of
// level i stands over one block of m_1 .. m_i endpoints and is one of W_i = w_2 .. w_i copies (a leaf has one
// copy); it is linked to the copies c + W_i * b, b = 0 .. w_{i+1}-1, of the block above it. Going down is
// unique, going up from level i chooses b. Switches are numbered level by level, in a level block by block,
// in a block copy by copy; blocks without endpoints are left out.
//
// Adaptive routing sends each packet up by the port with the shortest queue, as InfiniBand switches do where NCCL asks
// for it (NCCL_IB_ADAPTIVE_ROUTING, on by default). In the limit of many packets all W_{i+1} wires up from a block
// carry the same: flows share them as one link of their summed bandwidth, and the copies of a switch are one vertex.
// Then a tree with as many ports up as down is never busier inside than at its endpoints, whatever is sent.
//
// Builds fat trees: plans the levels of switches for the endpoints there are, wires them, and finds routes up (by
// destination or by hash) and down.
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

/// The ECMP choice: the last mix of SplitMix64 (Steele et al. 2014) over source * 2^32 + destination +
/// level * 0x9E3779B97F4A7C15, modulo the ports up. Endpoint numbers are those inside the tree, so that
/// trees side by side choose alike.
std::uint64_t ecmp_hash(std::int32_t source, std::int32_t destination, std::int32_t level) {
  std::uint64_t x = (static_cast<std::uint64_t>(source) << 32) + static_cast<std::uint64_t>(destination) +
                    static_cast<std::uint64_t>(level) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::int32_t ceil_div(std::int64_t a, std::int64_t b) { return static_cast<std::int32_t>((a + b - 1) / b); }

class FatTree : public LineGraph {
 public:
  /// One level of switches. Counts are capped at what the endpoints of the tree need.
  struct Level {
    std::int64_t span = 1;           ///< number of endpoints below a block
    std::int32_t blocks = 1;         ///< number of blocks that have endpoints
    std::int32_t copies = 1;         ///< number of switches of a block
    std::int32_t ports_up = 0;       ///< ports up of each switch; 0 at the top
    std::int32_t strands = 1;        ///< wires that a port up stands for
    std::int32_t first_switch = 0;   ///< number of the level's first switch
    std::int32_t first_wire_up = 0;  ///< number of the first wire to the next level
  };

  FatTree(std::vector<Level> levels, std::int32_t switches, UpRouting routing, std::int32_t endpoints,
          std::int32_t sharing, WireRate rate, WireRate uplink)
      : LineGraph(endpoints, switches),
        levels_(std::move(levels)),
        routing_(routing),
        sharing_(sharing),
        adapters_(endpoints / sharing) {
    wire_endpoints(rate);
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) wire_level(i, uplink);
  }

  static std::vector<Level> plan(const FatTreeSpec& spec, std::int32_t adapters);

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    append_wire(path, base + 2 * from);
    const std::int32_t source = from / sharing_, destination = to / sharing_;
    const std::int32_t adapter_wires = base + 2 * endpoints();
    if (sharing_ > 1) append_wire(path, adapter_wires + 2 * source);
    append_switch_route(source, destination, base, path);
    if (sharing_ > 1) append_wire(path, adapter_wires + 2 * destination + 1);
    append_wire(path, base + 2 * to + 1);
  }

  /// True if routes stay below the switches of one level, or go up through blocks of the level that each lie in one
  /// part. Ports up by destination turn by T / copies if T adapters lie between two parts: then all switches of a level
  /// turn in one direction, so that each part has switches of its own in the other direction. Hashed ports do not turn
  /// with the parts.
  [[nodiscard]] bool alike_by_blocks(std::int32_t endpoints) const override {
    if (endpoints % sharing_ != 0) return false;
    const std::int64_t adapters = endpoints / sharing_;
    for (const Level& level : levels_) {
      if (level.span % adapters == 0) return true;
      if (routing_ == UpRouting::ecmp || adapters % level.span != 0 || adapters % level.copies != 0)
        return false;
    }
    return true;
  }

  [[nodiscard]] std::string switch_name(std::int32_t index) const override {
    const std::int32_t tree = levels_.back().first_switch + levels_.back().copies;
    if (index >= tree) return fmt::format("adapter {}", index - tree);
    std::size_t level = levels_.size() - 1;
    while (levels_[level].first_switch > index) --level;
    const std::int32_t number = index - levels_[level].first_switch;
    const bool top = level + 1 == levels_.size();
    const std::string kind = level == 0            ? "leaf "
                             : top                 ? (levels_.size() == 2 ? "spine " : "core ")
                             : levels_.size() == 3 ? "spine "
                                                   : fmt::format("level {} switch ", level + 1);
    return kind + std::to_string(number);
  }

 private:
  [[nodiscard]] std::int32_t vertex(std::size_t level, std::int32_t block, std::int32_t copy) const {
    return endpoints() + levels_[level].first_switch + block * levels_[level].copies + copy;
  }

  void wire_endpoints(WireRate rate) {
    const auto leaf = [&](std::int32_t adapter) {
      return vertex(0, static_cast<std::int32_t>(adapter / levels_[0].span), 0);
    };
    if (sharing_ == 1) {
      for (std::int32_t i = 0; i < endpoints(); ++i) add_pair(i, leaf(i), rate);
      return;
    }
    const std::int32_t first_adapter = endpoints() + switches() - adapters_;
    // The adapter's port limits the traffic of its endpoints; their own wires to it add no latency.
    for (std::int32_t i = 0; i < endpoints(); ++i) {
      add_pair(i, first_adapter + i / sharing_, {rate.bandwidth, Seconds(0)});
    }
    for (std::int32_t a = 0; a < adapters_; ++a) add_pair(first_adapter + a, leaf(a), rate);
  }

  void wire_level(std::size_t i, WireRate uplink) {
    Level& level = levels_[i];
    level.first_wire_up = static_cast<std::int32_t>(wires().size());
    const std::int64_t children = levels_[i + 1].span / level.span;
    for (std::int32_t block = 0; block < level.blocks; ++block) {
      for (std::int32_t copy = 0; copy < level.copies; ++copy) {
        for (std::int32_t port = 0; port < level.ports_up; ++port) {
          add_pair(vertex(i, block, copy),
                   vertex(i + 1, static_cast<std::int32_t>(block / children), copy + level.copies * port),
                   uplink, level.strands);
        }
      }
    }
  }

  /// The wire up from a switch of `level` at `port`; its number plus 1 is the wire down.
  [[nodiscard]] std::int32_t wire_up(std::size_t level, std::int32_t block, std::int32_t copy,
                                     std::int32_t port) const {
    const Level& l = levels_[level];
    return l.first_wire_up + 2 * ((block * l.copies + copy) * l.ports_up + port);
  }

  [[nodiscard]] std::int32_t port_up(std::size_t level, std::int32_t source, std::int32_t destination) const {
    const Level& l = levels_[level];
    if (routing_ != UpRouting::ecmp) return destination / l.copies % l.ports_up;
    const std::uint64_t hash = ecmp_hash(source, destination, static_cast<std::int32_t>(level));
    return static_cast<std::int32_t>(hash % static_cast<std::uint64_t>(l.ports_up));
  }

  void append_switch_route(std::int32_t source, std::int32_t destination, std::int32_t base,
                           std::vector<std::int32_t>& path) const {
    const auto block = [&](std::size_t level, std::int32_t adapter) {
      return static_cast<std::int32_t>(adapter / levels_[level].span);
    };
    std::size_t level = 0;
    std::int32_t copy = 0;
    while (block(level, source) != block(level, destination)) {
      const std::int32_t port = port_up(level, source, destination);
      append_wire(path, base + wire_up(level, block(level, source), copy, port));
      copy += levels_[level].copies * port;
      ++level;
    }
    while (level > 0) {
      --level;
      const std::int32_t port = copy / levels_[level].copies;
      copy %= levels_[level].copies;
      append_wire(path, base + wire_up(level, block(level, destination), copy, port) + 1);
    }
  }

  std::vector<Level> levels_;
  UpRouting routing_;
  std::int32_t sharing_;
  std::int32_t adapters_;
};

std::vector<FatTree::Level> FatTree::plan(const FatTreeSpec& spec, std::int32_t adapters) {
  const std::int64_t down = spec.leaf_ports_down().value();
  std::vector<Level> levels(static_cast<std::size_t>(spec.levels));
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Level& level = levels[i];
    const bool top = i + 1 == levels.size();
    const std::int64_t children = i == 0 ? down : top ? spec.radix : spec.radix / 2;
    level.span = i == 0 ? children : levels[i - 1].span * children;
    level.blocks = ceil_div(adapters, level.span);
    level.ports_up = static_cast<std::int32_t>(top ? 0 : i == 0 ? spec.leaf_ports_up() : spec.radix / 2);
    if (spec.up_routing == UpRouting::adaptive && !top) level.strands = std::exchange(level.ports_up, 1);
    if (i == 0) continue;
    level.strands *= top ? 1 : levels[i - 1].strands;
    level.copies = levels[i - 1].copies * levels[i - 1].ports_up;
    level.first_switch = levels[i - 1].first_switch + levels[i - 1].blocks * levels[i - 1].copies;
  }
  return levels;
}

}  // namespace

std::unique_ptr<LineGraph> make_fat_tree(const FatTreeSpec& spec, std::int32_t endpoints,
                                         std::int32_t sharing, WireRate rate, WireRate uplink) {
  const std::int32_t adapters = endpoints / sharing;
  std::vector<FatTree::Level> levels = FatTree::plan(spec, adapters);
  const std::int32_t switches = levels.back().first_switch + levels.back().copies * levels.back().blocks;
  return std::make_unique<FatTree>(std::move(levels), switches + (sharing > 1 ? adapters : 0),
                                   spec.up_routing, endpoints, sharing, rate, uplink);
}

}  // namespace shardscape::network
