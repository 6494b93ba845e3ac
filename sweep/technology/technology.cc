#include "sweep/technology/technology.h"

#include <cmath>

#include "engine/spec/ranges.h"

namespace shardscape::technology {

namespace {

void require_share(Problems& problems, double value, const char* field) {
  problems.require(value >= 0 && value < 1, field, "is a share of the area, 0 <= share < 1");
}

}  // namespace

const LogicNode& LogicNode::root() const {
  const LogicNode* node = this;
  while (node->relative_to) node = node->relative_to.get();
  return *node;
}

LogicScaling LogicNode::total() const {
  LogicScaling result;
  for (const LogicNode* node = this; node->relative_to; node = node->relative_to.get())
    result = result * node->step;
  return result;
}

double LogicNode::power_exponent() const {
  return std::log(1 / step.power_at_equal_clock) / std::log(step.clock_at_equal_power);
}

Problems LogicNode::validate() const {
  Problems problems;
  require_range(problems, step.density, "density", ranges::kWeight);
  problems.require(step.clock_at_equal_power > 1 && step.clock_at_equal_power <= 1e3, "clock_at_equal_power",
                   "must be above 1 and at most 1000: the clock over that of the older node");
  problems.require(step.power_at_equal_clock >= 1e-3 && step.power_at_equal_clock < 1, "power_at_equal_clock",
                   "must be from 0.001 to below 1: the power over that of the older node");
  require_range(problems, sram_cell.value(), "sram_cell", ranges::kSramCell);
  return problems;
}

Problems MemoryTechnology::validate() const {
  Problems problems;
  require_range(problems, capacity_per_stack.value(), "capacity_per_stack", ranges::kCapacity);
  require_range(problems, bandwidth_per_stack.value(), "bandwidth_per_stack", ranges::kBandwidth);
  require_range(problems, energy.value(), "energy", ranges::kEnergyPerBit);
  require_range(problems, edge.value(), "edge", ranges::kLength);
  return problems;
}

Problems NetworkTechnology::validate() const {
  Problems problems;
  require_range(problems, bandwidth.value(), "bandwidth", ranges::kBandwidth);
  if (energy.value() != 0) require_range(problems, energy.value(), "energy", ranges::kEnergyPerBit);
  return problems;
}

Problems Floorplan::validate() const {
  Problems problems;
  require_range(problems, area.value(), "area", ranges::kArea);
  require_range(problems, power.value(), "power", ranges::kPower);
  require_share(problems, sm_share, "sm_share");
  require_share(problems, l2_share, "l2_share");
  require_share(problems, sm_sram_share, "sm_sram_share");
  require_share(problems, l2_sram_share, "l2_sram_share");
  require_range(problems, sm_share, "sm_share", ranges::kShare);
  problems.require(sm_share + l2_share < 1, "l2_share", "leaves no area for interfaces beside the SMs");
  require_range(problems, memory_edge.value(), "memory_edge", ranges::kLength);
  problems.require(memory.edge <= memory_edge, "memory_edge",
                   "must hold one stack of " + memory.name + " at least");
  require_range(problems, least_clock.value(), "least_clock", ranges::kClock);
  require_range(problems, most_clock.value(), "most_clock", ranges::kClock);
  problems.require(least_clock <= most_clock, "most_clock", "must not be below least_clock");
  return problems;
}

void Choice::merge(const Choice& other) {
  if (other.logic) logic = other.logic;
  if (other.memory) memory = other.memory;
  if (other.network) network = other.network;
  if (other.area) area = other.area;
  if (other.power) power = other.power;
}

}  // namespace shardscape::technology
