#include "engine/spec/device.h"

#include <algorithm>

namespace shardscape {

Problems DeviceSpec::validate() const {
  Problems problems;
  const auto positive = [&](double value, const char* field) {
    problems.require(value > 0, field, "must be greater than 0");
  };
  positive(static_cast<double>(sm.count), "sm.count");
  positive(sm.clock.value(), "sm.clock");
  positive(sm.vector_flops_per_clock, "sm.vector_flops_per_clock");
  positive(sm.registers.value(), "sm.registers");
  positive(sm.sram.value(), "sm.sram");
  positive(sm.sram_bytes_per_clock, "sm.sram_bytes_per_clock");
  problems.require(std::ranges::any_of(sm.tensor_flops_per_clock, [](double rate) { return rate > 0; }),
                   "sm.tensor_flops_per_clock", "needs the rate of at least one precision");
  for (const double rate : sm.tensor_flops_per_clock) {
    problems.require(rate >= 0, "sm.tensor_flops_per_clock", "rates must not be negative");
  }
  positive(l2.capacity.value(), "l2.capacity");
  positive(l2.bytes_per_clock, "l2.bytes_per_clock");
  positive(static_cast<double>(hbm.stacks), "hbm.stacks");
  positive(hbm.capacity_per_stack.value(), "hbm.capacity_per_stack");
  positive(hbm.bandwidth_per_stack.value(), "hbm.bandwidth_per_stack");
  const auto share = [&](double value, const char* field) {
    problems.require(value > 0 && value <= 1, field, "is a share of the peak, 0 < share <= 1");
  };
  share(sustained.tensor, "sustained.tensor");
  share(sustained.hbm, "sustained.hbm");
  share(sustained.l2, "sustained.l2");
  problems.require(kernel_latency.value() >= 0, "kernel_latency", "must not be negative");
  return problems;
}

}  // namespace shardscape
