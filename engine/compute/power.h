// The times that the card's power limit allows.
//
// A kernel draws energy for its matrix FLOPs and its HBM bytes, beside what the card draws idle:
//
//   time >= (FLOPs x e_flop + bytes x e_byte) / (budget - idle)
//
// so that the clock of a mix of work follows from its energies. The budget of a step is the card's limit
// (`power`); that of a kernel alone, launched for a moment, is `energy.burst_watts`: regulators average over
// milliseconds and more.
//
// Evidence. On the H100 bf16 products of NVIDIA's training recipes run at 650 TFLOP/s, from 8B models to 405B, where
// large products alone reach 770; on the A100 both reach 260. Rates of steps are proportional to watts over cards of
// one generation (B200 at 1,000 W, GB200 at 1,200 W), and twice as many fp8 FLOPs as bf16 ones take the same power. No
// clock is in the data, so that other causes of the same size can't be told apart.
#pragma once

#include "engine/spec/device.h"

namespace shardscape::compute {

/// Least time of the work under the power limit, in seconds; the device must know its energies. `burst`: as in
/// GemmRequest::burst.
inline double power_time(const DeviceSpec& device, Precision precision, double flops, double hbm_bytes,
                         bool burst = false) {
  constexpr double kPico = 1e-12;
  const double budget = (burst ? device.energy.burst_watts : device.power.value()) - device.energy.idle_watts;
  return (flops * device.flop_joules(precision) + hbm_bytes * kPico * device.energy.byte_pj) / budget;
}

}  // namespace shardscape::compute
