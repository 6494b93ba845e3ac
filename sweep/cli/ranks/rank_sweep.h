// A sweep that all ranks do together, from the first block to the finished file.
#pragma once

#include <optional>

#include "results_schema/disk/output_file.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/summary.h"
#include "results_schema/segments/segments.h"
#include "sweep/cli/ranks/rank_part.h"

namespace shardscape::cli {

/// Costs of all ranks together.
struct RunCost {
  double elapsed = 0, cpu = 0;  ///< in seconds
  int ranks = 1, threads = 1;
  double peak_memory = 0;  ///< of the rank with most, in bytes
};

/// What the ranks have done together.
struct Together {
  sweep::SweepOutcome outcome;
  /// All ranks run on one machine, so that each sees at once what another writes into a folder.
  bool one_machine = true;
  RunCost cost;  ///< without the elapsed time and the threads, which the caller knows
};

/// Rank 0's part: computes rows together with the others, which it has told to begin. Throws where something stopped
/// one of them. RankLost.
Together compute_together(const sweep::SweepJob& job, const results::SegmentStore& store,
                          const sweep::SweepOptions& options, const sweep::SharedStart& start,
                          ranks::Ranks& ranks);

/// The part of any other rank, which has been told where to begin.
void follow_together(const sweep::SweepJob& job, const results::Manifest& manifest,
                     const sweep::SweepOptions& options, const Heard& heard, ranks::Ranks& ranks);

/// Assembles the file from what was computed, and adds the cost to `together`; nothing where it was interrupted.
std::optional<results::Summary> assemble(Together& together, results::SegmentStore store,
                                         const results::OutputPath& output, const results::RunInfo& run);

}  // namespace shardscape::cli
