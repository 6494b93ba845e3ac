// A sweep that all ranks do together, from the first block to the file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results_schema/manifest.h"
#include "results_schema/output_file.h"
#include "results_schema/segments.h"
#include "results_schema/summary.h"
#include "sweep/cli/rank_part.h"

namespace shardscape::cli {

/// Of all ranks together.
struct RunCost {
  double elapsed = 0, cpu = 0;  ///< seconds
  int ranks = 1, threads = 1;
  double peak_memory = 0;  ///< bytes, of the largest rank
};

/// What the ranks have done together.
struct Together {
  sweep::SweepOutcome outcome;
  bool one_machine = true;  ///< all ranks run on one, and see at once what is in a folder
  RunCost cost;             ///< without the elapsed time and the threads, which the caller knows
};

/// Rank 0's part of the rows, with those of the others, which it has told to begin. What stopped one of them is an
/// exception. RankLost.
Together compute_together(const sweep::SweepJob& job, const results::SegmentStore& store,
                          const sweep::SweepOptions& options, const sweep::SharedStart& start,
                          ranks::Ranks& ranks);

/// The same of any other rank, which has heard where to begin.
void follow_together(const sweep::SweepJob& job, const results::Manifest& manifest,
                     const sweep::SweepOptions& options, const Heard& heard, ranks::Ranks& ranks);

/// The file of what was computed, its cost added to that in `together`; nothing where it was interrupted.
std::optional<results::Summary> assemble(Together& together, results::SegmentStore store,
                                         const results::OutputPath& output, const results::RunInfo& run);

}  // namespace shardscape::cli
