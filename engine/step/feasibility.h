// Rejects plans cheaply: what does not divide, what the device can't multiply, and what is not modelled.
#pragma once

#include "engine/spec/scenario.h"
#include "engine/spec/verdict.h"

namespace shardscape::step {

struct Verdict {
  Status status = Status::ok;
  Reason reason = Reason::none;
};

/// The first rule that the plan breaks, in the order of Reason; ok where none. O(1).
Verdict check_plan(const Setting& setting, const ParallelPlan& plan);

/// Most passes of a step through all stages (flattened, dualpipe, and where passes run in pairs). These are walked
/// through one by one and take some hundred bytes each; plans that would need more are not predicted.
inline constexpr std::int64_t kMostPasses = std::int64_t{1} << 24U;

/// Whether a plan that check_plan() accepts exceeds this limit or that of iterations. `every_pass`: the passes of all
/// schedules are walked through one by one. O(1).
bool too_long(const Setting& setting, const ParallelPlan& plan, bool every_pass);

}  // namespace shardscape::step
