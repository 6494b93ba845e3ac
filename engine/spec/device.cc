#include "engine/spec/device.h"

#include <algorithm>

namespace shardscape {

namespace {
/// What the smallest matrix tile needs, 32 x 32 with two stages of 32 x 32 operands of up to 4 bytes, and
/// fp32 accumulators in half of the registers.
constexpr Bytes kLeastSram(2.0 * (32 + 32) * 32 * 4);
constexpr Bytes kLeastRegisters(2.0 * 32 * 32 * 4);
}  // namespace

Problems DeviceSpec::validate() const {
  Problems problems;
  const auto positive = [&](double value, const char* field) {
    problems.require(value > 0, field, "must be greater than 0");
  };
  positive(static_cast<double>(sm.count), "sm.count");
  positive(sm.clock.value(), "sm.clock");
  positive(sm.vector_flops_per_clock, "sm.vector_flops_per_clock");
  problems.require(sm.registers >= kLeastRegisters, "sm.registers",
                   "must be at least 8 KiB, the accumulators of the smallest matrix tile twice");
  problems.require(sm.sram >= kLeastSram, "sm.sram",
                   "must be at least 16 KiB, two stages of the smallest matrix tile");
  positive(sm.sram_bytes_per_clock, "sm.sram_bytes_per_clock");
  positive(sm.l2_bytes_per_clock, "sm.l2_bytes_per_clock");
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
  share(sm.tensor_efficiency, "sm.tensor_efficiency");
  share(attention.forward, "attention.forward");
  share(attention.backward, "attention.backward");
  problems.require(sm.load_latency_clocks >= 0, "sm.load_latency_clocks", "must not be negative");
  const auto extent = [&](std::int64_t value, const char* field) {
    problems.require(value >= 1, field, "must be at least 1");
  };
  extent(sm.fragment.m, "sm.fragment.m");
  extent(sm.fragment.n, "sm.fragment.n");
  extent(sm.fragment.per_cta, "sm.fragment.per_cta");
  extent(sm.cluster, "sm.cluster");
  const auto fact = [&](double value, const char* field) {
    problems.require(value >= 0, field, "must not be negative; leave it out where it is not known");
  };
  fact(facts.power_watts, "power");
  fact(facts.die_area_mm2, "die.area_mm2");
  fact(facts.process_nm, "die.process_nm");
  fact(static_cast<double>(facts.link_ports), "links.ports");
  fact(facts.link_bandwidth_per_port.value(), "links.bandwidth_per_port");
  problems.require(kernel_latency.value() >= 0, "kernel_latency", "must not be negative");
  problems.require(cold_start.value() >= 0, "cold_start", "must not be negative");
  return problems;
}

}  // namespace shardscape
