// Watches a step that is being executed, and may end it: executions take up to hours, and who wants the fastest plan
// of many needs no more of a slow one than that it is slow. Loads that are simulated request by request are watched,
// too.
#pragma once

#include <functional>

#include "engine/base/quantity.h"

namespace shardscape {

/// Called before an execution, and every some thousand events during it, with a lower bound of the time of the step,
/// which never falls (of a load: 0). It is given up when it returns false.
using StepWatch = std::function<bool(Seconds at_least)>;

}  // namespace shardscape
