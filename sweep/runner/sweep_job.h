// What a sweep computes: the points of a study, and their division into rows and blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/spec/scenario.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/columns.h"
#include "sweep/runner/fault_sampling.h"
#include "sweep/space/constraint.h"
#include "sweep/space/design_space.h"
#include "sweep/study/study.h"

namespace shardscape::sweep {

/// Shard `index` of `count`, counted from 1, of the blocks. Shards are contiguous, disjoint, and together the whole.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;
};

/// A sample with one point from each of `count` equal parts of the space (stratified_choice()).
struct Sample {
  std::uint64_t count = 1;
  std::uint64_t seed = 0;
};

/// Rows per block: a function of the study alone, so that every run divides it alike. There should be many blocks for
/// every thread: 1/128 of the space, a power of two up to 4096. Blocks should be long enough that the fixed cost of
/// their chunks, some 0.3 ms for all columns, matters little: at least 256 evaluations of some ten microseconds, where
/// a point takes `evaluations` of them, and at least 8 rows. They should be short enough that none takes long, as an
/// interrupted sweep finishes those in flight, and loses those of simulated loads: at most 32,768 evaluations, but at
/// least `least_rows`.
std::uint32_t rows_per_block(std::uint64_t points, std::uint64_t evaluations = 1,
                             std::uint64_t least_rows = 8);

/// Immutable; any number of threads may use one object.
class SweepJob {
 public:
  /// `study` must be valid and outlive the job. `limit`: only so many first point ids; or a `sample` of them all.
  /// Either may exceed the number of points, which then are all taken.
  explicit SweepJob(const Study& study, std::optional<std::uint64_t> limit = std::nullopt, Shard shard = {},
                    std::optional<Sample> sample = std::nullopt);

  /// All points of a study whose space is that of another job, so that the space need not be listed again.
  SweepJob(const Study& study, const SweepJob& of_space);

  /// Only the points of a job's study that have these ids: ascending, distinct, at least one.
  SweepJob(const SweepJob& whole, std::vector<std::uint64_t> ids);

  [[nodiscard]] const Study& study() const { return *study_; }
  [[nodiscard]] const DesignSpace& space() const { return *space_; }
  [[nodiscard]] const results::ColumnTable& columns() const { return columns_; }
  [[nodiscard]] const results::BlockLayout& layout() const { return layout_; }
  [[nodiscard]] const results::ShardRange& shards() const { return shards_; }
  /// The rows that the study stores; for a job of given ids, all rows.
  [[nodiscard]] const results::StoredRows& stored_rows() const { return stored_rows_; }

  [[nodiscard]] const WorkloadSpec& workload(std::uint64_t setting) const {
    return study_->workloads[setting % study_->workloads.size()];
  }
  /// The fault draws, which are the same for every point; null where the study has no faults.
  [[nodiscard]] const FaultDraws* fault_draws() const { return fault_draws_.get(); }
  /// The values (or codes) of the hardware axes in a setting.
  [[nodiscard]] std::span<const double> hardware(std::uint64_t setting) const;
  /// Whether all constraints of the study hold.
  [[nodiscard]] bool admits(const ParallelPlan& plan, const WorkloadSpec& workload) const;

  /// What the study promises and asks of results.
  [[nodiscard]] const results::LimitCheck& limits() const { return limits_; }
  /// The prediction of a point without faults, held against that: its status may become `missed`.
  [[nodiscard]] Prediction judged(std::uint64_t setting, const ParallelPlan& plan,
                                  Prediction prediction) const;

  /// The description of the study for the result file; `run` says who computes it.
  [[nodiscard]] results::Manifest manifest(const results::RunInfo& run) const;

 private:
  SweepJob(const Study& study, std::shared_ptr<const DesignSpace> space, std::optional<std::uint64_t> limit,
           Shard shard, std::optional<Sample> sample);

  const Study* study_;
  std::shared_ptr<const DesignSpace> space_;
  std::vector<Constraint> constraints_;
  results::ColumnTable columns_;
  results::LimitCheck limits_;
  std::shared_ptr<const FaultDraws> fault_draws_;
  results::BlockLayout layout_;
  results::ShardRange shards_;
  results::StoredRows stored_rows_;
  std::vector<double> hardware_;  ///< systems x axes
};

}  // namespace shardscape::sweep
