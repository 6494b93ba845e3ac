// What a token takes of the devices that compute it: energy, and money.
//
//   joules per token          = power limit of a device / tokens per second and device
//   cost per million tokens   = price of a device per second / tokens per second and device * 10^6
//
// Tokens are those of a step in training, and those that are generated in inference; all devices of a plan count, those
// of both pools. Devices draw less than their limit wherever a step waits, so that the energy is an upper bound of
// theirs; hosts, switches and cooling are left out of it. A price has what it was quoted with.
#pragma once

#include "engine/spec/device.h"
#include "engine/spec/prediction.h"

namespace shardscape {

/// Fills joules_per_token and cost_per_million_tokens from tokens_per_s_per_gpu; what the device does not say stays
/// NaN.
inline void fill_token_prices(const DeviceSpec& device, Prediction& prediction) {
  constexpr double kSecondsPerHour = 3600, kMillion = 1e6;
  const double rate = prediction.tokens_per_s_per_gpu;
  if (!(rate > 0)) return;
  if (device.power.value() > 0) prediction.joules_per_token = device.power.value() / rate;
  if (device.price_per_hour > 0)
    prediction.cost_per_million_tokens = device.price_per_hour / kSecondsPerHour / rate * kMillion;
}

}  // namespace shardscape
