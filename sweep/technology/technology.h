// What semiconductor technology offers a GPU: logic nodes, memories, networks, and the floor plan that says
// how a known device uses its own. YAML keys carry the same names; the presets stand in
// hw_presets/technology/.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/problems.h"
#include "engine/base/quantity.h"

namespace shardscape::technology {

/// A physical amount in base SI units whose dimension no model of the engine needs.
template <class Tag>
class Amount {
 public:
  constexpr Amount() = default;
  constexpr explicit Amount(double value) : value_(value) {}
  [[nodiscard]] constexpr double value() const { return value_; }
  friend constexpr auto operator<=>(Amount a, Amount b) = default;

 private:
  double value_ = 0;
};
using Metres = Amount<struct LengthTag>;
using SquareMetres = Amount<struct AreaTag>;
using Watts = Amount<struct PowerTag>;
using JoulesPerBit = Amount<struct EnergyPerBitTag>;

/// How one circuit changes from an older node to a newer one, as foundries state it.
struct LogicScaling {
  double density = 1;               ///< gates per area, over the older node's
  double clock_at_equal_power = 1;  ///< over the older node's clock; above 1 where this node is better
  double power_at_equal_clock = 1;  ///< over the older node's power; below 1 where this node is better

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
  std::shared_ptr<const LogicNode> relative_to;  ///< what `step` starts from; null: a node without a file
  LogicScaling step;
  SquareMetres sram_cell;  ///< of the dense 6-transistor cell

  /// The node at the end of the chain that relative_to makes; the scaling over it.
  [[nodiscard]] const LogicNode& root() const;
  [[nodiscard]] LogicScaling total() const;
  /// Power of a circuit grows as clock^exponent: the power law through the two points that `step` states,
  /// power 1 at clock_at_equal_power and power_at_equal_clock at clock 1.
  [[nodiscard]] double power_exponent() const;
  [[nodiscard]] Problems validate() const;
};

struct MemoryTechnology {
  std::string name;
  Bytes capacity_per_stack;  ///< of a stack of HBM, a device of GDDR, a package of LPDDR
  BytesPerSecond bandwidth_per_stack;
  JoulesPerBit energy;  ///< array, interface and controller, per bit moved
  Metres edge;          ///< of the die, taken by the interface of one stack

  [[nodiscard]] Problems validate() const;
};

struct NetworkTechnology {
  std::string name;
  BytesPerSecond bandwidth;  ///< per GPU and direction
  JoulesPerBit energy;       ///< inside the GPU's package: transmitter and receiver

  [[nodiscard]] Problems validate() const;
};

/// Where the area and the power of a known device go: what a device of another technology is scaled from.
struct Floorplan {
  std::string name;
  std::string device;  ///< the name of the device that is laid out so
  LogicNode logic;     ///< what it is made in
  MemoryTechnology memory;
  SquareMetres area;
  // Shares of the area; the rest are interfaces and the like, which do not shrink.
  double sm_share = 0, l2_share = 0;
  double sm_sram_share = 0, l2_sram_share = 0;  ///< of the SMs' and of the L2's own area: memory cells
  Metres memory_edge;                           ///< of the die, taken by all stacks
  Watts power;                                  ///< of the package
  Hertz least_clock, most_clock;

  [[nodiscard]] Problems validate() const;
};

/// What to change of a device; what is left out stays.
struct Choice {
  std::optional<LogicNode> logic;
  std::optional<MemoryTechnology> memory;
  std::optional<NetworkTechnology> network;
  std::optional<SquareMetres> area;
  std::optional<Watts> power;  ///< of the package, memory and network included

  [[nodiscard]] bool empty() const { return !logic && !memory && !network && !area && !power; }
  /// Takes over what `other` says.
  void merge(const Choice& other);
};

}  // namespace shardscape::technology
