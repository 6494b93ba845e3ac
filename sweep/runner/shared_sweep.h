// A sweep that several processes share: which takes what, and how far they are together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/segments.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/run_sweep.h"

namespace shardscape::sweep {

/// The missing blocks, for the ranks to take: a region of neighbouring blocks for each rank, all of as many blocks but for
/// one, and each in pieces in the order of the blocks. Every piece is 1/8 of what is left of its region, so that pieces
/// are long at first (each becomes a segment of its own) and a block at the end (so that all ranks finish together); at
/// most what fills a segment. That is guided self-scheduling (Polychronopoulos and Kuck 1987) with affinity (Markatos and
/// LeBlanc 1994): neighbouring points share what a rank works out for them. One rank gets the ranges as they are. A
/// function of its arguments alone: ranks that agree on these agree on what the n-th piece of a region is.
std::vector<std::vector<results::BlockRange>> cut_into_pieces(std::span<const results::BlockRange> missing,
                                                              const results::BlockLayout& layout, int ranks,
                                                              std::uint64_t rows_of_segment);

/// What the ranks of a sweep start from.
struct SharedStart {
  std::vector<results::BlockRange> missing;  ///< the same on every rank
  std::uint64_t rows_before = 0;             ///< sealed by earlier runs
  /// Called with every piece that this rank takes, before it begins with it. May be empty.
  std::function<void(results::BlockRange)> took;
  /// Called when all that this rank computes is sealed, before it waits for the others. May be empty.
  std::function<void()> sealed;
};

/// This rank's part of the sweep: computes pieces of its own region, then of the others' in turn, until none is left or
/// all are asked to stop, which `options.stop` does, too. On rank 0 the observer is told of the progress of all ranks, and the call returns
/// when all of them have finished; elsewhere there is nothing to observe. Every rank calls it, with a store of
/// the same folder. The outcome is that of this rank. StoreError where the disk fails, when the other ranks have
/// been asked to stop; RankLost on rank 0.
SweepOutcome run_shared_sweep(const SweepJob& job, const results::SegmentStore& store, SweepOptions options,
                              const SharedStart& start, ranks::Ranks& ranks);

}  // namespace shardscape::sweep
