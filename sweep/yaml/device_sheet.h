// Devices by the figures of their data sheets: peak FLOP/s, memory, its bandwidth, links.
#pragma once

#include <optional>
#include <vector>

#include "engine/spec/spec_numbers.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::yaml {

/// The map `changed` with those keys of `base` added that it lacks, at any depth of maps. Of a pair of keys that say the
/// same in two ways (of each stack, or of all) either replaces both of the base.
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

}  // namespace shardscape::yaml
