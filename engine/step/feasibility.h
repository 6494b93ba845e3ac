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

}  // namespace shardscape::step
