// Shares of a device's peaks that its file may leave out and that then count as 1. No kernel reaches a peak, so readers
// of the results are told.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/spec/spec_numbers.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

/// A device whose file leaves out some shares.
struct AssumedShares {
  std::string device;
  Location where;
  std::vector<const DeviceNumber*> shares;
  bool sheet =
      false;  ///< the device is given by its data sheet: shares are those of the devices that come along
};

/// The shares of peaks that the map of a device does not give (KeyUse::peak_if_absent).
std::vector<const DeviceNumber*> absent_shares(const Node& device);

/// A line that says what is assumed of a device, and what values the devices that come with the program have. `shares`
/// must not be empty.
std::string describe_assumption(const AssumedShares& assumed, std::span<const DeviceNumber* const> shares,
                                const Catalog& catalog);

}  // namespace shardscape::yaml
