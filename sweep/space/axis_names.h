// The names of a plan's axes, wherever one is named: --point, constraints, keys of `space:`, columns; and quotes around
// what somebody named.
#pragma once

#include <string>
#include <string_view>

#include "engine/spec/plan_axes.h"

namespace shardscape::sweep {

/// A name as columns have them, of a path of the study: device_hbm_bandwidth of hardware.device.hbm.bandwidth.
std::string without_path(std::string_view name);

/// The axis of a name: that of points (tp) or that of its column (tensor_parallel), also as a path of the study
/// (space.tp). Null where there is none.
const PlanAxisRow* find_axis(std::string_view name);

/// The text in single quotes, as messages about expressions and points show it.
inline std::string quote(std::string_view text) {
  std::string quoted(1, '\'');
  quoted += text;
  quoted += '\'';
  return quoted;
}

}  // namespace shardscape::sweep
