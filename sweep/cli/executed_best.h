// Which plan of a study executes fastest, asked beside a search of prices.
#pragma once

#include <functional>
#include <string>

#include "sweep/cli/progress.h"
#include "sweep/search/best_first.h"

namespace shardscape::cli {

struct ExecutedWish {
  bool reference = false;
  int threads = 1;
  ProgressMode progress = ProgressMode::none;
  ranks::Ranks* together = nullptr;  ///< that search together, as in sweep::SearchOptions
  std::function<bool(const sweep::SearchProgress&)> go_on = {};  ///< as those of sweep::SearchOptions
  std::function<bool()> seek_hints = {};
};

/// One line that says it, as far as the wish lets the search of executed steps come. `priced`: of a whole study in
/// hierarchical mode; `goal`: no front. Of several ranks each calls it, and rank 0 hears.
std::string executed_best(const sweep::SweepJob& priced, const sweep::SearchGoal& goal,
                          const ExecutedWish& wish);

}  // namespace shardscape::cli
