// A GPU of another technology under an area and a power budget, scaled from a known one.
//
// The reference device has n0 SMs at clock f0 on area A0, of which shares s (SMs) and c (L2) shrink with the
// technology and the rest, interfaces, does not; its package draws P0, of which its memory takes M0.
//
//   area of one SM with its part of the L2, density D and SRAM cell ratio C of the new node over the old:
//     a = A0/n0 * (s*((1-u)/D + u*C) + c*((1-v)/D + v*C))       u, v: shares of memory cells
//   SMs that fit area A:  n = floor((A - (1-s-c)*A0*sqrt(A/A0)) / a)     interfaces lie along the edge
//   memory:  stacks = floor(edge*sqrt(A/A0) / edge of a stack),  M = stacks * bandwidth * energy per bit * 8
//   network: N = 2 directions * bandwidth * energy per bit * 8
//   clock:   (P - M - N) = n * (P0 - M0)/n0 * p * (f/f0)^k       p: power ratio at equal clock of the nodes
//            within least_clock..most_clock, scaled as the clock at equal power. Where even the least clock
//            draws more, SMs are left out until it does not.
//
// L2 capacity and bandwidth and HBM follow the SMs and the stacks; an SM, its shares and latencies stay as
// they are. Without a power budget the die keeps its own power and memory and network come on top.
//
// Sources: node statements and the power law: sweep/technology/technology.h and the presets. SRAM and
// interfaces shrink apart from logic: Naffziger et al. 2021 (ISCA, "Pioneering chiplet technology"),
// figure 2. An architecture derived from budgets: Ardalani et al. 2024 (DeepFlow, ACM TODAES) and Kundu et
// al. 2024, arXiv:2407.14645, section on technology nodes. Left out: leakage apart, yield beyond that of the
// reference (its spare SMs are part of the area of the used ones), packages of several dies.
#pragma once

#include <tl/expected.hpp>

#include "engine/base/problems.h"
#include "engine/spec/device.h"
#include "sweep/technology/technology.h"

namespace shardscape::technology {

struct BuiltDevice {
  DeviceSpec device;
  SquareMetres sm_area;  ///< area of one SM with its part of the L2
  SquareMetres area;     ///< area that SMs, L2 and interfaces use; never above the budget
  Watts die_power, memory_power, network_power;
  bool power_limited = false;  ///< SMs were left out because they would draw too much even at the least clock
  [[nodiscard]] Watts power() const {
    return Watts(die_power.value() + memory_power.value() + network_power.value());
  }
};

/// Builds the device. `base` must be the device of the floor plan. Problems name a key of Choice.
tl::expected<BuiltDevice, Problems> build_device(const DeviceSpec& base, const Floorplan& floorplan,
                                                 const Choice& choice);

}  // namespace shardscape::technology
