// Watches a step that is being executed, and may end it: executions take up to hours, and who wants the fastest plan
// of many needs no more of a slow one than that it is slow.
#pragma once

#include <functional>

#include "engine/base/quantity.h"

namespace shardscape {

/// Asked before and, every some thousand events, during an execution, with a time that the step takes at least; it never
/// falls. Where it says false the execution is given up.
using StepWatch = std::function<bool(Seconds at_least)>;

}  // namespace shardscape
