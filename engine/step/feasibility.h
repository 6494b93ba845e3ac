// Cheap rejections: what does not divide, what the device cannot multiply, what is not modelled.
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

/// What is walked through pass by pass, or iteration by iteration, of some hundred bytes each: passes of a step through
/// all stages (flattened, dualpipe, and where passes run in pairs), and iterations in which a server reads the prompts
/// of all its clients once. Of plans with more nothing is predicted.
inline constexpr std::int64_t kMostPasses = std::int64_t{1} << 24U;
inline constexpr std::int64_t kMostIterations = std::int64_t{1} << 20U;

/// Whether a plan that check_plan() lets pass would take more. `every_pass`: the passes of all schedules are walked
/// through. O(1).
bool too_long(const Setting& setting, const ParallelPlan& plan, bool every_pass);

}  // namespace shardscape::step
