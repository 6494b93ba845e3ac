#include "sweep/technology/technology.h"

#include <cmath>

namespace shardscape::technology {

namespace {

void require_positive(Problems& problems, double value, const char* field) {
  problems.require(value > 0, field, "must be greater than 0");
}

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
  require_positive(problems, step.density, "density");
  problems.require(step.clock_at_equal_power > 1, "clock_at_equal_power",
                   "must be greater than 1: the clock over that of the older node");
  problems.require(step.power_at_equal_clock > 0 && step.power_at_equal_clock < 1, "power_at_equal_clock",
                   "must be between 0 and 1: the power over that of the older node");
  require_positive(problems, sram_cell.value(), "sram_cell");
  return problems;
}

Problems MemoryTechnology::validate() const {
  Problems problems;
  require_positive(problems, capacity_per_stack.value(), "capacity_per_stack");
  require_positive(problems, bandwidth_per_stack.value(), "bandwidth_per_stack");
  require_positive(problems, energy.value(), "energy");
  require_positive(problems, edge.value(), "edge");
  return problems;
}

Problems NetworkTechnology::validate() const {
  Problems problems;
  require_positive(problems, bandwidth.value(), "bandwidth");
  problems.require(energy.value() >= 0, "energy", "must not be negative");
  return problems;
}

Problems Floorplan::validate() const {
  Problems problems;
  require_positive(problems, area.value(), "area");
  require_positive(problems, power.value(), "power");
  require_share(problems, sm_share, "sm_share");
  require_share(problems, l2_share, "l2_share");
  require_share(problems, sm_sram_share, "sm_sram_share");
  require_share(problems, l2_sram_share, "l2_sram_share");
  require_positive(problems, sm_share, "sm_share");
  problems.require(sm_share + l2_share < 1, "l2_share", "leaves no area for interfaces beside the SMs");
  require_positive(problems, memory_edge.value(), "memory_edge");
  problems.require(memory.edge <= memory_edge, "memory_edge",
                   "must hold one stack of " + memory.name + " at least");
  require_positive(problems, least_clock.value(), "least_clock");
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
