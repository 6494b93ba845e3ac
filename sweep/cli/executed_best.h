// Which plan of a study executes fastest, asked beside a search of prices.
#pragma once

#include <functional>
#include <string>

#include "sweep/search/best_first.h"

namespace shardscape::cli {

/// One line that says it, as far as `go_on` lets the search of executed steps come. `priced`: of a whole study in
/// hierarchical mode; `goal`: no front.
std::string executed_best(const sweep::SweepJob& priced, const sweep::SearchGoal& goal, bool reference,
                          int threads, const std::function<bool(const sweep::SearchProgress&)>& go_on);

}  // namespace shardscape::cli
