// The numbers of a device, one row for each, in the order in which its file lists them.
#pragma once

#include <span>

#include "engine/spec/device.h"
#include "engine/spec/number_row.h"

namespace shardscape {

using DeviceNumber = NumberRow<DeviceSpec>;

/// All numbers of a device, those of a group ("sm.", "nccl.ll.", ...) together.
std::span<const DeviceNumber> device_numbers();

}  // namespace shardscape
