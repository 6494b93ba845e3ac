// The part of a sweep that one thread does: evaluates a block of points and encodes it.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "results_schema/rows/block.h"
#include "sweep/evidence/assess.h"
#include "sweep/runner/run_sweep.h"
#include "sweep/runner/setting_evaluators.h"

namespace shardscape::sweep {

/// A block ready to be written, with data for the progress.
struct FinishedBlock {
  results::EncodedBlock block;
  Tally tally;
  bool whole = true;  ///< false where it was stopped within, so that it counts as not begun
};

/// Whether `a` ranks before `b`: by the objective, then by point id.
bool ranks_before(const BestPoint& a, const BestPoint& b, results::Better better);

/// The direction of the study's first objective; smaller where it has none.
results::Better better_of(const SweepJob& job);

/// Adds the counts of `part` to `whole`, and keeps the better of their best points.
void add(Tally& whole, const Tally& part, results::Better better);

/// Evaluates and encodes one block after the other. Results depend on the block alone; which rows are candidates
/// depends on the whole sweep, too.
class BlockWorker {
 public:
  /// `layout` divides points into blocks; `whole` is that of BlockEncoder; `stop` ends simulated loads within. All
  /// references must outlive the worker.
  BlockWorker(const SweepJob& job, const results::BlockLayout& layout, const EvaluatorFactory& factory,
              const KnownPredictions& known = {}, const results::RowSelector* whole = nullptr,
              std::function<bool()> go_on_sampling = {}, const std::atomic<bool>* stop = nullptr);

  FinishedBlock run(std::uint64_t block);

  [[nodiscard]] double evaluate_seconds() const { return evaluate_seconds_; }
  [[nodiscard]] double encode_seconds() const { return encode_seconds_; }

 private:
  bool evaluate(std::uint64_t first, std::uint32_t rows);  ///< false where it was stopped within
  Prediction predict(std::uint64_t id, const PointIndex& point);
  void sample(std::uint64_t point_id);
  [[nodiscard]] bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  [[nodiscard]] bool samples() const { return !go_on_sampling_ || go_on_sampling_(); }
  [[nodiscard]] double goodput() const;
  Assessment assessment(std::uint64_t setting, const ParallelPlan& plan);

  const SweepJob* job_;
  const results::BlockLayout* layout_;
  SettingEvaluators evaluators_;
  Evaluator* evaluator_ = nullptr;  ///< the evaluator of the point predicted last; null where that was known
  KnownPredictions known_;
  std::function<bool()> go_on_sampling_;
  const std::atomic<bool>* stop_;
  results::BlockEncoder encoder_;
  std::optional<std::uint64_t> assessed_;  ///< the setting that finding_ belongs to
  evidence::Finding finding_;
  // Data of the current block.
  std::vector<PointIndex> points_;
  std::vector<Prediction> predictions_;
  std::vector<results::PointRecord> records_;
  std::vector<std::optional<results::FaultSummary>> summaries_;
  std::vector<results::FaultSampleRecord> samples_;
  std::uint64_t unsampled_ = 0;
  double evaluate_seconds_ = 0, encode_seconds_ = 0;
};

}  // namespace shardscape::sweep
