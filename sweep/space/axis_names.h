// The names of a plan's axes, wherever one is named: --point, constraints, keys of `space:`, columns.
#pragma once

#include <string_view>

#include "engine/spec/plan_axes.h"

namespace shardscape::sweep {

/// The axis of a name: that of points (tp) or that of its column (tensor_parallel), also as a path of the study
/// (space.tp). Null where there is none.
const PlanAxisRow* find_axis(std::string_view name);

}  // namespace shardscape::sweep
