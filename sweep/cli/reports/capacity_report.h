// Output of `capacity`: the answers as a table, as JSON, and as the data of their page.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "sweep/capacity/find_capacity.h"
#include "sweep/cli/reports/report.h"

namespace shardscape::cli {

/// A table of the answers, then for each what proves it, the error to expect and the command that launches it (one of
/// `launches` for each answer, empty where there is none), and where nothing fits what would have to change.
void print_capacity(std::ostream& out, const sweep::SweepJob& job,
                    std::span<const sweep::CapacityAnswer> answers, const std::vector<std::string>& launches);

/// What a reader should know of runs that are too short.
std::vector<std::string> capacity_warnings(const sweep::SweepJob& job,
                                           std::span<const sweep::CapacityAnswer> answers);

/// {study, model, cluster, stack, promises, answers: [...], ...}; `points`: with all that was simulated, for the page.
Json capacity_json(const sweep::SweepJob& job, std::span<const sweep::CapacityAnswer> answers,
                   const std::vector<std::string>& launches, bool points);

}  // namespace shardscape::cli
