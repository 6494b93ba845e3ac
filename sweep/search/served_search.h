// Search among servers of a load that is simulated request by request: all points get their floors
// (engine/serving/live/load_floor.h), a small part of a simulation each, and are simulated in the order of the best
// value that these leave for the objective, until that is beyond the answer.
//
// Floors are known of latencies, and of requests_per_s and goodput_requests_per_s_per_gpu where the whole run counts
// (statistic: run): no more requests are done than the fastest iterations serve of the shortest ones. Points are
// simulated in rounds of 1, 2, 4 ... 64, side by side, so that the answer and what is visited are the same for any
// number of threads.
#pragma once

#include <string>

#include "sweep/search/best_first.h"

namespace shardscape::sweep {

/// Why a goal of serving has no floors, as a clause; empty where it has.
std::string why_no_load_floors(const SweepJob& job, const SearchGoal& goal);

/// Searches on rank 0; elsewhere the outcome is empty. why_no_load_floors(job, goal) must be empty.
SearchOutcome search_served(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options);

}  // namespace shardscape::sweep
