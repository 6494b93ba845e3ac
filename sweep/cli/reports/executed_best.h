// Finds the plan of a study that executes fastest, after a search of prices.
#pragma once

#include <functional>
#include <string>

#include "sweep/cli/terminal/progress.h"
#include "sweep/search/best_first.h"

namespace shardscape::cli {

struct ExecutedWish {
  bool reference = false;
  int threads = 1;
  ProgressMode progress = ProgressMode::none;
  ranks::Ranks* together = nullptr;  ///< ranks that search together, as in sweep::SearchOptions
  std::function<bool()> go_on = {};
  std::function<bool()> may_visit = {}, seek_hints = {};  ///< as in sweep::SearchOptions
};

/// The result in one line, as far as the wish lets the search of executed steps get. `priced`: a whole study in
/// hierarchical mode; `goal`: not a front. With several ranks each must call it, and rank 0 gets the line.
std::string executed_best(const sweep::SweepJob& priced, const sweep::SearchGoal& goal,
                          const ExecutedWish& wish);

}  // namespace shardscape::cli
