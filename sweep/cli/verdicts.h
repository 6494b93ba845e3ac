// Verdicts on points in words and numbers.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "engine/prediction.h"
#include "results_schema/summary.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

/// What a reason means, as half a sentence: "the number of heads does not divide by tp".
std::string describe(Reason reason);

/// The status that a point with this reason has.
Status status_of(Reason reason);

struct VerdictCounts {
  std::vector<results::CodeCount> statuses, reasons;  ///< codes that occur
  std::uint64_t points = 0;
  bool examples = false;  ///< CodeCount::example means something
};
VerdictCounts verdict_counts(const sweep::Tally& tally, std::uint64_t points);

/// One line per status, below it one per reason: count, share, the first point where that is known, what it
/// means.
void print_verdicts(std::ostream& out, const VerdictCounts& counts);

}  // namespace shardscape::cli
