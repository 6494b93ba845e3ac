#include "engine/spec/device.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {
/// The least SRAM and registers of an SM: they hold the smallest matrix tile, 32 x 32, with two stages of 32 x 32
/// operands of up to 4 bytes, and its fp32 accumulators in half of the registers.
constexpr Bytes kLeastSram(2.0 * (32 + 32) * 32 * 4);
constexpr Bytes kLeastRegisters(2.0 * 32 * 32 * 4);
}  // namespace

FlopsPerSecond DeviceSpec::tensor_sustained(Precision p) const {
  const FlopsPerSecond units = sm.tensor_efficiency * tensor_peak(p);
  if (!steps_by_energy()) return sustained.tensor * units;
  const double share = units.value() * flop_joules(p) / (facts.power_watts - energy.idle_watts);
  // The pace of the units and that of the power limit combine as in a single product: the 4-norm of their times.
  const double squared = share * share;
  return units / std::sqrt(std::sqrt(1 + squared * squared));
}

double DeviceSpec::flop_joules(Precision p) const {
  constexpr double kPico = 1e-12, kLanes = 8;
  const double bf16 = kPico * energy.flop_pj;
  if (p == Precision::fp8) return energy.fp8 * bf16;
  if (p == Precision::fp4) return energy.fp4 * bf16;
  // A unit does half the FLOPs per clock on a type twice as wide at the same power; fp32 runs on the vector lanes.
  if (p == Precision::tf32) return 2 * bf16;
  return p == Precision::fp32 ? kLanes * bf16 : bf16;
}

Problems DeviceSpec::validate() const {
  Problems problems;
  const auto check = [&](auto value, const char* field, const Range& range) {
    require_range(problems, value, field, range);
  };
  check(sm.count, "sm.count", ranges::kUnits);
  check(sm.clock, "sm.clock", ranges::kClock);
  check(sm.vector_flops_per_clock, "sm.vector_flops_per_clock", ranges::kPerClock);
  problems.require(sm.registers >= kLeastRegisters, "sm.registers",
                   "must be at least 8 KiB, the accumulators of the smallest matrix tile twice");
  problems.require(sm.sram >= kLeastSram, "sm.sram",
                   "must be at least 16 KiB, two stages of the smallest matrix tile");
  for (const auto& [bytes, field] :
       {std::pair(sm.registers, "sm.registers"), std::pair(sm.sram, "sm.sram")}) {
    if (bytes.value() > ranges::kCapacity.high) check(bytes, field, ranges::kCapacity);
  }
  check(sm.sram_bytes_per_clock, "sm.sram_bytes_per_clock", ranges::kPerClock);
  check(sm.l2_bytes_per_clock, "sm.l2_bytes_per_clock", ranges::kPerClock);
  problems.require(std::ranges::any_of(sm.tensor_flops_per_clock, [](double rate) { return rate > 0; }),
                   "sm.tensor_flops_per_clock", "needs the rate of at least one precision");
  for (const double rate : sm.tensor_flops_per_clock)
    check(rate, "sm.tensor_flops_per_clock", ranges::kPerClockOrNone);
  check(l2.capacity, "l2.capacity", ranges::kCapacity);
  check(l2.bytes_per_clock, "l2.bytes_per_clock", ranges::kPerClock);
  check(hbm.stacks, "hbm.stacks", ranges::kUnits);
  check(hbm.capacity_per_stack, "hbm.capacity_per_stack", ranges::kCapacity);
  check(hbm.bandwidth_per_stack, "hbm.bandwidth_per_stack", ranges::kBandwidth);
  check(sustained.tensor, "sustained.tensor", ranges::kShare);
  check(sustained.hbm, "sustained.hbm", ranges::kShare);
  check(sustained.l2, "sustained.l2", ranges::kShare);
  check(sm.tensor_efficiency, "sm.tensor_efficiency", ranges::kShare);
  check(attention.forward, "attention.forward", ranges::kShare);
  check(attention.backward, "attention.backward", ranges::kShare);
  check(attention.prompt_rate, "attention.prompt_rate", ranges::kOfAnother);
  check(attention.decode_rate, "attention.decode_rate", ranges::kOfAnother);
  check(energy.idle_watts, "energy.idle_watts", ranges::kPowerIfKnown);
  check(energy.flop_pj, "energy.flop_pj", ranges::kPicojoulesIfKnown);
  check(energy.byte_pj, "energy.byte_pj", ranges::kPicojoulesIfKnown);
  check(energy.fp8, "energy.fp8", ranges::kOfAnother);
  check(energy.fp4, "energy.fp4", ranges::kOfAnother);
  check(energy.burst_watts, "energy.burst_watts", ranges::kPowerIfKnown);
  if (energy.flop_pj > 0) {
    problems.require(facts.power_watts > energy.idle_watts, "energy.idle_watts",
                     "must be below the device's power, which work shares");
    problems.require(energy.burst_watts >= facts.power_watts, "energy.burst_watts",
                     "must be at least the device's power");
  }
  check(products.latency, "products.latency", ranges::kTime);
  check(products.step, "products.step", ranges::kTime);
  check(products.reduction, "products.reduction", ranges::kTime);
  check(products.output, "products.output", ranges::kOverhead);
  check(products.port, "products.port", ranges::kPerClock);
  check(sm.load_latency_clocks, "sm.load_latency_clocks", ranges::kClocks);
  check(sm.fragment.m, "sm.fragment.m", ranges::kFragment);
  check(sm.fragment.n, "sm.fragment.n", ranges::kFragment);
  check(sm.fragment.per_cta, "sm.fragment.per_cta", ranges::kFragment);
  check(sm.cluster, "sm.cluster", ranges::kCluster);
  check(kernel_latency, "kernel_latency", ranges::kTime);
  check(cold_start, "cold_start", ranges::kTime);
  node.validate(problems);
  check(facts.power_watts, "power", ranges::kPowerIfKnown);
  check(facts.die_area_mm2, "die.area_mm2", ranges::kDieAreaIfKnown);
  check(facts.process_nm, "die.process_nm", ranges::kProcessIfKnown);
  check(facts.link_ports, "links.ports", ranges::kPortsIfKnown);
  check(facts.link_bandwidth_per_port, "links.bandwidth_per_port", ranges::kBandwidthIfKnown);
  return problems;
}

}  // namespace shardscape
