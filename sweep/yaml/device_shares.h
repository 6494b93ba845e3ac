// Shares of a device's peaks that its file may leave out and that then count as 1. No kernel reaches a peak, so readers
// of the results are told.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec/device.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

struct DeviceShare {
  std::string_view group, key;  ///< group and key, such as sustained, tensor
  double (*of)(const DeviceSpec&);

  /// The path of the share: "sustained.tensor".
  [[nodiscard]] std::string path() const { return fmt::format("{}.{}", group, key); }
};
std::span<const DeviceShare> device_shares();

/// A device whose file leaves out some shares.
struct AssumedShares {
  std::string device;
  Location where;
  std::vector<std::size_t> shares;  ///< indices into device_shares()
};

/// Indices of the shares that the map of a device does not give.
std::vector<std::size_t> absent_shares(const Node& device);

/// A line that says what is assumed of a device, and what values the devices that come with the program have. `shares`
/// must not be empty.
std::string describe_assumption(const AssumedShares& assumed, std::span<const std::size_t> shares,
                                const Catalog& catalog);

}  // namespace shardscape::yaml
