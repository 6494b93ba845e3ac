// The sweep: from block numbers to sealed rows, in parallel.
//
// One pipeline of three stages: a serial in-order source of blocks, parallel evaluation and encoding, a
// serial in-order writer. In-order writing makes the rows a pure function of the study, whatever the number
// of threads; the pipeline's tokens bound the blocks in flight, so that memory does not grow with the number
// of points and a slow disk slows the source.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "engine/spec/prediction.h"
#include "results_schema/segments/segments.h"
#include "sweep/runner/evaluator.h"
#include "sweep/runner/sweep_job.h"

namespace shardscape::sweep {

/// A point and its value of the study's first objective.
struct BestPoint {
  double objective = 0;
  std::uint64_t point_id = 0;
};

/// Numbers of points by status and reason, and the best of the points that are ok.
struct Tally {
  std::array<std::uint64_t, enum_names<Status>().size()> by_status{};
  std::array<std::uint64_t, enum_names<Reason>().size()> by_reason{};
  std::optional<BestPoint> best;
  /// Points that are ok but have no fault samples, see SweepOptions::go_on_sampling.
  std::uint64_t unsampled = 0;

  [[nodiscard]] std::uint64_t count(Status status) const {
    return by_status[static_cast<std::size_t>(status)];
  }
  [[nodiscard]] std::uint64_t count(Reason reason) const {
    return by_reason[static_cast<std::size_t>(reason)];
  }
};

struct SweepProgress {
  std::uint64_t rows_total = 0;      ///< rows of the file
  std::uint64_t rows_before = 0;     ///< rows sealed by earlier runs
  std::uint64_t rows_evaluated = 0;  ///< rows evaluated by this run
  Tally tally;                       ///< counts of rows_evaluated

  [[nodiscard]] std::uint64_t rows_done() const { return rows_before + rows_evaluated; }
};

/// Busy seconds of each stage, summed over threads.
struct StageTimes {
  double evaluate = 0, encode = 0, write = 0;
};

/// Gives the next consecutive blocks to compute, in any order from call to call; nothing where there are no more.
using NextBlocks = std::function<std::optional<results::BlockRange>()>;

/// Predictions that are known already, in the order of their points' ids.
struct KnownPredictions {
  std::span<const std::uint64_t> ids;  ///< ascending
  std::span<const Prediction> predictions;
  /// The prediction of a point; null where it is not known.
  [[nodiscard]] const Prediction* find(std::uint64_t id) const {
    const auto found = std::ranges::lower_bound(ids, id);
    if (found == ids.end() || *found != id) return nullptr;
    return &predictions[static_cast<std::size_t>(found - ids.begin())];
  }
};

struct SweepOptions {
  int threads = 1;
  EvaluatorFactory evaluator = simulator_factory();
  /// Predictions that need not be made again. Under faults the point is evaluated all the same, as faults start from
  /// it.
  KnownPredictions known;
  /// Under faults: asked from any thread before, during and after a point's samples; once it returns false, that point
  /// and all that follow have no samples. Empty: every point has its samples.
  std::function<bool()> go_on_sampling;
  results::SealPolicy seal = {};
  /// Called by the writer stage after each block, never twice at once. May be empty.
  std::function<void(const SweepProgress&)> observer;
  /// When it becomes true, no further block is started; those in flight are finished and sealed, but those of simulated
  /// loads, which may take long, are given up. May be null.
  const std::atomic<bool>* stop = nullptr;
  /// Of a shared sweep, whose `stop` is set between blocks: the same, heard within simulated loads. May be null.
  const std::atomic<bool>* stop_within = nullptr;
  /// Gives blocks of the store that no other process computes; called from one thread at a time. Empty: all missing
  /// blocks.
  NextBlocks next;
};

struct SweepOutcome {
  bool complete =
      false;  ///< every block of the job is sealed; false when stopped, or where others compute blocks, too
  SweepProgress progress;
  StageTimes times;
};

/// Computes the blocks that `store` lacks, or those that `options` give, and seals them there. `store` must belong to a
/// manifest of `job`. Results do not depend on `threads`. StoreError where the disk fails; sealed segments remain.
SweepOutcome run_sweep(const SweepJob& job, const results::SegmentStore& store, const SweepOptions& options);

}  // namespace shardscape::sweep
