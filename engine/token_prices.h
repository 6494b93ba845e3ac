// What a token takes of the devices that compute it: energy, and money.
//
//   joules per token          = power limit of a device / tokens per second and device
//   cost per million tokens   = price of a device per second / tokens per second and device * 10^6
//
// Tokens are those of a step in training, and those that are generated in inference; all devices of a plan count, those
// of both pools. Devices draw less than their limit wherever a step waits, so that the energy is an upper bound of
// theirs; hosts, switches and cooling are left out of it. A price has what it was quoted with.
#pragma once

#include "engine/spec/scenario.h"

namespace shardscape {

/// The mean of a number of the device over all GPUs of the plan, those of unequal pools by how many each has; 0 where a
/// device does not say it.
template <class Number>
double mean_of_gpus(const System& system, const ParallelPlan& plan, const Number& of) {
  const double reading =
      system.prefill_device ? static_cast<double>(plan.prefill.gpus()) / static_cast<double>(plan.gpus()) : 0;
  const double own = of(system.device), theirs = reading > 0 ? of(*system.prefill_device) : own;
  return own > 0 && theirs > 0 ? (1 - reading) * own + reading * theirs : 0;
}

/// What a GPU of the plan costs an hour, in the mean; 0 where a device says no price.
inline double price_per_hour(const System& system, const ParallelPlan& plan) {
  return mean_of_gpus(system, plan, [](const DeviceSpec& device) { return device.price_per_hour; });
}

/// Fills joules_per_token and cost_per_million_tokens from tokens_per_s_per_gpu. What the device of a pool does not say
/// stays NaN.
inline void fill_token_prices(const System& system, const ParallelPlan& plan, Prediction& prediction) {
  constexpr double kSecondsPerHour = 3600, kMillion = 1e6;
  const double rate = prediction.tokens_per_s_per_gpu;
  if (!(rate > 0)) return;
  const double watts =
      mean_of_gpus(system, plan, [](const DeviceSpec& device) { return device.power.value(); });
  const double price = price_per_hour(system, plan);
  if (watts > 0) prediction.joules_per_token = watts / rate;
  if (price > 0) prediction.cost_per_million_tokens = price / kSecondsPerHour / rate * kMillion;
}

}  // namespace shardscape
