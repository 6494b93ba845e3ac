// Shares of a device's peaks that its file may leave out and that then count as 1: no kernel reaches a peak,
// so that whoever reads the results should know.
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
  std::string_view group, key;  ///< sustained, tensor
  double (*of)(const DeviceSpec&);

  /// "sustained.tensor"
  [[nodiscard]] std::string path() const { return fmt::format("{}.{}", group, key); }
};
std::span<const DeviceShare> device_shares();

/// A device whose file leaves shares out.
struct AssumedShares {
  std::string device;
  Location where;
  std::vector<std::size_t> shares;  ///< indices into device_shares()
};

/// The shares that the map of a device does not give.
std::vector<std::size_t> absent_shares(const Node& device);

/// One line on what is assumed of a device, with what the devices that come with the program have instead.
/// `shares` must not be empty.
std::string describe_assumption(const AssumedShares& assumed, std::span<const std::size_t> shares,
                                const Catalog& catalog);

}  // namespace shardscape::yaml
