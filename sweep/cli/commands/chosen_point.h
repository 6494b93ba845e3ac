// The point of a study that --point names.
#pragma once

#include <cstddef>
#include <string>

#include "engine/spec/scenario.h"
#include "sweep/study/study.h"

namespace shardscape::cli {

struct ChosenPoint {
  ParallelPlan plan;
  std::size_t at = 0;  ///< index of its setting: the first on as many GPUs as the plan's degrees make up
  Setting setting;     ///< with the concurrency or the rate that the text gives
};

/// The point that the text of an option names; BadInput with all that is wrong with it.
ChosenPoint choose_point(const sweep::Study& study, const std::string& text, const char* option = "--point");

/// Says on stderr which of several settings was taken.
void note_other_settings(const sweep::Study& study, const ChosenPoint& point);

}  // namespace shardscape::cli
