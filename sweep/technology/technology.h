// What semiconductor technology offers a GPU: logic nodes, memories, networks, and the floor plan that says
// how a known device uses its own. YAML keys carry the same names; the presets stand in
// hw_presets/technology/.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/problems.h"
#include "engine/base/quantity.h"

namespace shardscape::technology {

using Metres = Amount<struct LengthTag>;
using SquareMetres = Amount<struct AreaTag>;
using shardscape::Watts;
using JoulesPerBit = Amount<struct EnergyPerBitTag>;

/// How a circuit changes from an older node to a newer one, as foundries state it.
struct LogicScaling {
  double density = 1;               ///< gates per area, relative to the older node
  double clock_at_equal_power = 1;  ///< relative to the older node; above 1 where this node is better
  double power_at_equal_clock = 1;  ///< relative to the older node; below 1 where this node is better

  friend LogicScaling operator*(const LogicScaling& a, const LogicScaling& b) {
    return {a.density * b.density, a.clock_at_equal_power * b.clock_at_equal_power,
            a.power_at_equal_clock * b.power_at_equal_clock};
  }
  friend LogicScaling operator/(const LogicScaling& a, const LogicScaling& b) {
    return {a.density / b.density, a.clock_at_equal_power / b.clock_at_equal_power,
            a.power_at_equal_clock / b.power_at_equal_clock};
  }
};

struct LogicNode {
  std::string name;
  /// The node that `step` starts from; null: one that has no file.
  std::shared_ptr<const LogicNode> relative_to;
  LogicScaling step;
  SquareMetres sram_cell;  ///< area of the dense 6-transistor cell

  /// root(): the node at the end of the chain of relative_to; total(): the scaling from there to this node.
  [[nodiscard]] const LogicNode& root() const;
  [[nodiscard]] LogicScaling total() const;
  /// Power of a circuit grows as clock^exponent: the power law through the two points that `step` states,
  /// power 1 at clock_at_equal_power and power_at_equal_clock at clock 1.
  [[nodiscard]] double power_exponent() const;
  [[nodiscard]] Problems validate() const;
};

struct MemoryTechnology {
  std::string name;
  Bytes capacity_per_stack;  ///< a stack of HBM, a device of GDDR or a package of LPDDR
  BytesPerSecond bandwidth_per_stack;
  JoulesPerBit energy;  ///< per bit moved, of array, interface and controller together
  Metres edge;          ///< length of die edge that the interface of one stack takes

  [[nodiscard]] Problems validate() const;
};

struct NetworkTechnology {
  std::string name;
  BytesPerSecond bandwidth;  ///< per GPU and direction
  JoulesPerBit energy;       ///< per bit, inside the GPU's package: transmitter and receiver

  [[nodiscard]] Problems validate() const;
};

/// The division of the area and the power of a known device; devices of other technologies are scaled from it.
struct Floorplan {
  std::string name;
  std::string device;  ///< name of the device that is laid out like this
  LogicNode logic;     ///< the node that the device is made in
  MemoryTechnology memory;
  SquareMetres area;
  // Shares of the area, 0..1; the rest are interfaces and the like, which do not shrink.
  double sm_share = 0, l2_share = 0;
  /// Memory cells, as shares of the area of the SMs and of the L2.
  double sm_sram_share = 0, l2_sram_share = 0;
  Metres memory_edge;  ///< length of die edge that all stacks take together
  Watts power;         ///< power of the whole package
  Hertz least_clock, most_clock;

  [[nodiscard]] Problems validate() const;
};

/// The changes that make a device of another technology; what is not set stays.
struct Choice {
  std::optional<LogicNode> logic;
  std::optional<MemoryTechnology> memory;
  std::optional<NetworkTechnology> network;
  std::optional<SquareMetres> area;
  std::optional<Watts> power;  ///< power budget of the whole package, memory and network included

  [[nodiscard]] bool empty() const { return !logic && !memory && !network && !area && !power; }
  /// Takes over every value that is set in `other`.
  void merge(const Choice& other);
};

}  // namespace shardscape::technology
