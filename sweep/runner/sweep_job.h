// What a sweep computes: the points of a study, and how they fall into rows and blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/spec/scenario.h"
#include "results_schema/block.h"
#include "results_schema/columns.h"
#include "results_schema/manifest.h"
#include "sweep/runner/fault_sampling.h"
#include "sweep/space/constraint.h"
#include "sweep/space/design_space.h"
#include "sweep/study/study.h"

namespace shardscape::sweep {

/// Part `index` of `count` of the blocks, counted from 1. Parts are contiguous, disjoint, and together the
/// whole.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;
};

/// One point of each of `count` equal parts of the space (stratified_choice()).
struct Sample {
  std::uint64_t count = 1;
  std::uint64_t seed = 0;
};

/// Rows of one block: a function of the study alone, so that every run of it cuts it alike. Enough blocks for every
/// thread to have many: 1/128 of the space, a power of two up to 4096. Long enough that the fixed cost of its chunks,
/// some 0.3 ms for all columns, is small beside it: at least 256 evaluations, each some ten microseconds, where a point
/// takes `evaluations` of them, and at least 8 rows. Short enough that none takes long, as an interrupted sweep finishes
/// those in flight: at most 32,768 evaluations, but at least 8 rows.
std::uint32_t rows_per_block(std::uint64_t points, std::uint64_t evaluations = 1);

/// Immutable; any number of threads may use one object.
class SweepJob {
 public:
  /// `study` is valid and outlives the job. `limit`: the first so many point ids only; or a `sample` of them
  /// all. Either may be more than there are: then it is all.
  explicit SweepJob(const Study& study, std::optional<std::uint64_t> limit = std::nullopt, Shard shard = {},
                    std::optional<Sample> sample = std::nullopt);

  /// All points of a study whose space is that of another job, which need not be listed again.
  SweepJob(const Study& study, const SweepJob& of_space);

  /// Those points of a job's study alone that have these ids: ascending, distinct, one at least.
  SweepJob(const SweepJob& whole, std::vector<std::uint64_t> ids);

  [[nodiscard]] const Study& study() const { return *study_; }
  [[nodiscard]] const DesignSpace& space() const { return *space_; }
  [[nodiscard]] const results::ColumnTable& columns() const { return columns_; }
  [[nodiscard]] const results::BlockLayout& layout() const { return layout_; }
  [[nodiscard]] const results::ShardRange& shards() const { return shards_; }
  /// As the study says; of a job of some ids all.
  [[nodiscard]] const results::StoredRows& stored_rows() const { return stored_rows_; }

  [[nodiscard]] const WorkloadSpec& workload(std::uint64_t setting) const {
    return study_->workloads[setting % study_->workloads.size()];
  }
  /// The fault draws that every point meets; null where the study has no faults.
  [[nodiscard]] const FaultDraws* fault_draws() const { return fault_draws_.get(); }
  /// The values (or codes) of the hardware axes in a setting.
  [[nodiscard]] std::span<const double> hardware(std::uint64_t setting) const;
  /// True where every constraint of the study holds.
  [[nodiscard]] bool admits(const ParallelPlan& plan, const WorkloadSpec& workload) const;

  /// What the result file says about the study; `run` says who computes it.
  [[nodiscard]] results::Manifest manifest(const results::RunInfo& run) const;

 private:
  SweepJob(const Study& study, std::shared_ptr<const DesignSpace> space, std::optional<std::uint64_t> limit,
           Shard shard, std::optional<Sample> sample);

  const Study* study_;
  std::shared_ptr<const DesignSpace> space_;
  std::vector<Constraint> constraints_;
  results::ColumnTable columns_;
  std::shared_ptr<const FaultDraws> fault_draws_;
  results::BlockLayout layout_;
  results::ShardRange shards_;
  results::StoredRows stored_rows_;
  std::vector<double> hardware_;  ///< systems x axes
};

}  // namespace shardscape::sweep
