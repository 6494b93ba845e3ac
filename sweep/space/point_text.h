// Reads and writes one plan as text: "tp=8,sp=1,cp=1,pp=4,dp=2,zero=1,recompute=selective,mbs=1,schedule=1f1b,vpp=1,
// order=tp-cp-dp-pp".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/base/problems.h"
#include "engine/spec/plan.h"
#include "engine/spec/ranges.h"
#include "engine/spec/workload.h"
#include "sweep/space/space_spec.h"

namespace shardscape::sweep {

/// Requests per second of an open loop. At lower rates moments are so large that an iteration is lost in their
/// rounding.
inline constexpr Range kRequestRate{1e-6, 1e9};
/// A rate per second, from "3 /s", "180 /min" or a number of requests per second; or what would be right.
tl::expected<double, std::string> parse_request_rate(std::string_view text);

struct PointText {
  ParallelPlan plan;  ///< canonical: axes without effect have their idle value
  // For inference, where given:
  std::optional<std::int64_t> concurrency;
  std::optional<double> request_rate;  ///< requests per second
};

/// The keys of a point: the names of the plan axes (engine/spec/plan_axes.h) that exist in the phase, which may be
/// given by their columns, too (axis_names.h), and concurrency and request_rate for inference.
std::vector<std::string_view> point_keys(Phase phase);

/// Parses `text`. An axis that is left out takes the first value of `space`; a degree that fills follows from the
/// others. The plan need not be in the space, but its degrees must multiply to `gpus` (less those of a pool that
/// prefills). Every problem is reported, with the key as its field.
tl::expected<PointText, Problems> parse_point(std::string_view text, const SpaceSpec& space,
                                              std::int64_t gpus, Phase phase);

/// The plan as text for readers: "tp=8,pp=4,dp=2,zero=1,recompute=none,mbs=1,schedule=1f1b". Axes without effect and
/// the default rank order are left out; parse_point() reads it back where the first values of the space are idle.
std::string to_point_text(const ParallelPlan& plan, Phase phase, char separator = ',');

/// The settings in which `plan` differs from `from`: "tp=8,dp=2".
std::string changes_text(const ParallelPlan& plan, const ParallelPlan& from, Phase phase);

}  // namespace shardscape::sweep
