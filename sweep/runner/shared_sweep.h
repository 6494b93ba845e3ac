// A sweep that several processes share: which of them takes which blocks, and their common progress.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "results_schema/rows/block.h"
#include "results_schema/segments/segments.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::sweep {

/// Cuts the missing blocks into pieces for the ranks to take: a region of neighbouring blocks for each rank, of equal
/// numbers up to one, and each region into pieces in the order of the blocks. A piece is 1/8 of what is left of its
/// region, so that pieces are long at first (each becomes a segment of its own) and single blocks at the end (so that
/// all ranks finish together), and has at most the rows of a segment. This is guided self-scheduling (Polychronopoulos
/// and Kuck 1987) with affinity (Markatos and LeBlanc 1994): neighbouring points share data that a rank computes for
/// them. A single rank gets the ranges as they are. A function of its arguments alone, so that ranks which agree on
/// these agree on the n-th piece of a region.
std::vector<std::vector<results::BlockRange>> cut_into_pieces(std::span<const results::BlockRange> missing,
                                                              const results::BlockLayout& layout, int ranks,
                                                              std::uint64_t rows_of_segment);

/// The input of a sweep that ranks share.
struct SharedStart {
  std::vector<results::BlockRange> missing;  ///< equal on every rank
  std::uint64_t rows_before = 0;             ///< rows sealed by earlier runs
  /// Called with every piece that this rank takes, before it begins it. May be empty.
  std::function<void(results::BlockRange)> took;
  /// Called when all that this rank computes is sealed, before it waits for the others. May be empty.
  std::function<void()> sealed;
};

/// Runs this rank's part of the sweep: pieces of its own region, then of the others' in turn, until none is left or all
/// ranks are asked to stop, which `options.stop` does, too. On rank 0 the observer is told the progress of all ranks,
/// and the call returns when all have finished; other ranks have no observer. Every rank must call it, with a store of
/// the same folder. The outcome is that of this rank. StoreError where the disk fails, after the other ranks have been
/// asked to stop; RankLost on rank 0.
SweepOutcome run_shared_sweep(const SweepJob& job, const results::SegmentStore& store, SweepOptions options,
                              const SharedStart& start, ranks::Ranks& ranks);

}  // namespace shardscape::sweep
