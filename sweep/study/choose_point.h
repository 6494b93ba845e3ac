// The point of a study that a text names, and the setting that it is in.
#pragma once

#include <cstddef>
#include <string>
#include <tl/expected.hpp>

#include "engine/base/problems.h"
#include "sweep/space/point_text.h"
#include "sweep/study/study.h"

namespace shardscape::sweep {

struct ChosenPlan {
  ParallelPlan plan;
  std::size_t at = 0;     ///< index of its setting: the first on as many GPUs as the plan's degrees make up
  WorkloadSpec workload;  ///< of that setting, with the concurrency or the rate that the text gives
  std::string
      warning;  ///< that requests drawn there are longer than what the model is published for; mostly empty
};

/// The plan that `text` ("tp=8,pp=4") names; or all that is wrong with it, by key.
tl::expected<ChosenPlan, Problems> choose_plan(const std::string& text, const Study& study);

/// The same with all of its setting, which is large to copy.
struct ChosenPoint {
  ParallelPlan plan;
  std::size_t at = 0;
  Setting setting;
  std::string warning;
};
ChosenPoint with_setting(ChosenPlan chosen, const Study& study);

}  // namespace shardscape::sweep
