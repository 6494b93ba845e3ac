// Verdicts on points, in words and numbers.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "engine/spec/prediction.h"
#include "results_schema/rows/summary.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::cli {

/// The meaning of a reason as half a sentence: "the number of heads does not divide by tp".
std::string describe(Reason reason);

/// The status of a point with this reason.
Status status_of(Reason reason);

struct VerdictCounts {
  std::vector<results::CodeCount> statuses, reasons;  ///< codes that occur
  std::uint64_t points = 0;
  bool examples = false;  ///< whether CodeCount::example is valid
};
VerdictCounts verdict_counts(const sweep::Tally& tally, std::uint64_t points);

/// Prints one line per status, and below it one per reason: count, share, the first point where that is known, and the
/// meaning.
void print_verdicts(std::ostream& out, const VerdictCounts& counts);

}  // namespace shardscape::cli
