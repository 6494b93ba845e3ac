// The point of a study that `simulate` is asked for.
#pragma once

#include <cstddef>
#include <string>

#include "engine/spec/workload.h"
#include "sweep/space/point_text.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

struct ChosenPoint {
  sweep::PointText point;
  std::size_t setting = 0;  ///< the first one on as many GPUs as the point's degrees make up
};

/// The point that `text` ("tp=8,pp=4") says. BadInput with all that is wrong; each problem begins with `where`.
ChosenPoint chosen_point(const std::string& where, const std::string& text, const sweep::Study& study);

/// Gives the workload the concurrency and the rate of requests that the point has; BadInput where it has no use of
/// them.
void take_load(const std::string& where, const sweep::PointText& point, WorkloadSpec& workload);

}  // namespace shardscape::cli
