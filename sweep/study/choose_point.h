// The point of a study that a text names, and the setting that it is in.
#pragma once

#include <cstddef>
#include <string>
#include <tl/expected.hpp>

#include "engine/base/problems.h"
#include "sweep/space/point_text.h"
#include "sweep/study/study.h"

namespace shardscape::sweep {

struct ChosenPoint {
  ParallelPlan plan;
  std::size_t at = 0;  ///< index of its setting: the first on as many GPUs as the plan's degrees make up
  Setting setting;     ///< with the concurrency or the rate that the text gives
  std::string
      warning;  ///< that requests drawn there are longer than what the model is published for; mostly empty
};

/// The point that `text` ("tp=8,pp=4") names; or all that is wrong with it, by key.
tl::expected<ChosenPoint, Problems> choose_point(const std::string& text, const Study& study);

}  // namespace shardscape::sweep
