// What the commands that price one kernel have in common.
#pragma once

#include <string>

#include "engine/spec/device.h"
#include "sweep/cli/commands.h"

namespace shardscape::cli {

/// The type that `text` names, or where there is none bf16, or fp16 on a device without. What is wrong goes to
/// `problems`; `device` may be null where it could not be read.
bool read_precision(const std::string& text, const DeviceSpec* device, ProblemList& problems,
                    Precision& value);

}  // namespace shardscape::cli
