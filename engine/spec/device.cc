#include "engine/spec/device.h"

#include <cmath>

#include "engine/spec/spec_numbers.h"

namespace shardscape {

FlopsPerSecond DeviceSpec::tensor_sustained(Precision p) const {
  const FlopsPerSecond units = sm.tensor_efficiency * tensor_peak(p);
  if (!steps_by_energy()) return sustained.tensor * units;
  const double share = units.value() * flop_joules(p) / (power.value() - energy.idle_watts);
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
  require_ranges(problems, *this, device_numbers(), "",
                 {"nccl.", "custom_all_reduce.vllm.", "custom_all_reduce.trtllm.",
                  "expert_dispatch.low_latency.", "expert_dispatch.normal."});
  problems.require(std::ranges::any_of(sm.tensor_flops_per_clock, [](double rate) { return rate > 0; }),
                   "sm.tensor_flops_per_clock", "needs the rate of at least one precision");
  if (energy.flop_pj > 0) {
    problems.require(power.value() > energy.idle_watts, "energy.idle_watts",
                     "must be below the device's power, which work shares");
    problems.require(energy.burst_watts >= power.value(), "energy.burst_watts",
                     "must be at least the device's power");
  }
  return problems;
}

}  // namespace shardscape
