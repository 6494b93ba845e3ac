// Devices by the figures of their data sheets: peak FLOP/s, memory, its bandwidth, links. Shares of a device's peaks
// that its file may leave out and that then count as 1: no kernel reaches a peak, so readers of the results are told.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec/spec_numbers.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

/// The map `changed` with those keys of `base` added that it lacks, at any depth of maps. Of a pair of keys that say
/// the same in two ways (of each stack, or of all) either replaces both of the base.
Node laid_over(const Node& changed, const Node& base);

/// Whether a device's map has keys of a data sheet: `peak`, `memory` or `bandwidth`.
bool is_sheet(const Node& device);

struct SheetDevice {
  Node parts;                                ///< the device by its parts
  std::vector<const DeviceNumber*> assumed;  ///< shares of peaks that neither it nor its base says
};

/// The parts of such a device. What it does not say is as in `base`, the map of a device, or where that is null as in
/// a device of no maker (device_sheet.cc). Nothing, with diagnostics under `path`, where its figures cannot be read.
std::optional<SheetDevice> by_parts(Node device, const Node* base, const std::string& path,
                                    Diagnostics& diagnostics);

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

/// The device that such a line says is known by its data sheet alone; nothing of other lines. A resolved study does not
/// tell, and the results of a sweep hold the lines.
std::optional<std::string> sheet_device_of(std::string_view line);

}  // namespace shardscape::yaml
