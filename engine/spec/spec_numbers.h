// The numbers of devices, stack profiles and models, one row for each, in the order in which their files list them.
#pragma once

#include <span>

#include "engine/spec/device.h"
#include "engine/spec/model.h"
#include "engine/spec/number_row.h"
#include "engine/spec/stack.h"

namespace shardscape {

using DeviceNumber = NumberRow<DeviceSpec>;
using StackNumber = NumberRow<StackProfile>;

/// All numbers of a device, or of a profile; those of a group ("sm.", "nccl.ll.", "host.", ...) stand together.
std::span<const DeviceNumber> device_numbers();
std::span<const StackNumber> stack_numbers();

std::span<const NumberRow<ModelSpec>> model_numbers();
/// The numbers of the groups `moe` and `attention` of a model file.
std::span<const NumberRow<MixtureOfExperts>> expert_numbers();
std::span<const NumberRow<LatentAttention>> latent_numbers();

}  // namespace shardscape
