// Evaluates the points of a block, samples their faults, computes goodput and evidence, and encodes the rows. Timing of
// each stage and the best point are noted for the progress.
#include "sweep/runner/block_worker.h"

#include <chrono>
#include <limits>
#include <utility>

#include "sweep/study/evidence_of.h"

namespace shardscape::sweep {

namespace {

using Clock = std::chrono::steady_clock;

/// Gives a vector what `make` returns, where it keeps it.
template <class Make>
struct MadeInPlace {
  Make make;
  operator Prediction() const { return make(); }  // NOLINT(google-explicit-constructor): it has to convert
};
template <class Make>
MadeInPlace(Make) -> MadeInPlace<Make>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Tally tally_of(const results::EncodedBlock& block) {
  const results::Summary& summary = block.summary;
  Tally tally;
  std::uint64_t& without = tally.by_reason[static_cast<std::size_t>(Reason::none)];
  without = block.rows;
  for (const results::CodeCount& code : summary.statuses) tally.by_status[code.code] = code.count;
  for (const results::CodeCount& code : summary.reasons) {
    tally.by_reason[code.code] = code.count;
    without -= code.count;
  }
  if (!summary.top.empty())
    tally.best = BestPoint{summary.top.front().values.front(), summary.top.front().point_id};
  return tally;
}

}  // namespace

bool ranks_before(const BestPoint& a, const BestPoint& b, results::Better better) {
  if (a.objective == b.objective) return a.point_id < b.point_id;
  return better == results::Better::larger ? a.objective > b.objective : a.objective < b.objective;
}

results::Better better_of(const SweepJob& job) {
  const std::vector<std::string>& objectives = job.study().objectives;
  const results::ColumnInfo* const column =
      objectives.empty() ? nullptr : job.columns().find(objectives.front());
  return column == nullptr ? results::Better::smaller : column->better;
}

void add(Tally& whole, const Tally& part, results::Better better) {
  for (std::size_t i = 0; i < whole.by_status.size(); ++i) whole.by_status[i] += part.by_status[i];
  for (std::size_t i = 0; i < whole.by_reason.size(); ++i) whole.by_reason[i] += part.by_reason[i];
  whole.unsampled += part.unsampled;
  if (part.best && (!whole.best || ranks_before(*part.best, *whole.best, better))) whole.best = part.best;
}

BlockWorker::BlockWorker(const SweepJob& job, const results::BlockLayout& layout,
                         const EvaluatorFactory& factory, const KnownPredictions& known,
                         const results::RowSelector* whole, std::function<bool()> go_on_sampling,
                         const std::atomic<bool>* stop)
    : job_(&job),
      layout_(&layout),
      evaluators_(job.study(), factory),
      known_(known),
      go_on_sampling_(std::move(go_on_sampling)),
      stop_(stop),
      encoder_(job.columns(), layout.rows_per_block, job.study().objectives, job.stored_rows(), whole) {
  const std::uint32_t rows = layout.rows_per_block;
  points_.reserve(rows);
  predictions_.reserve(rows);
  records_.reserve(rows);
  summaries_.reserve(rows);
}

FinishedBlock BlockWorker::run(std::uint64_t block) {
  const Clock::time_point start = Clock::now();
  FinishedBlock finished;
  finished.whole = evaluate(layout_->first_row(block), layout_->rows_of(block));
  evaluate_seconds_ += seconds_since(start);
  if (!finished.whole) return finished;

  const Clock::time_point evaluated = Clock::now();
  finished.block = encoder_.encode(block, records_);
  finished.tally = tally_of(finished.block);
  finished.tally.unsampled = std::exchange(unsampled_, 0);
  finished.block.samples = std::move(samples_);
  encode_seconds_ += seconds_since(evaluated);
  return finished;
}

bool BlockWorker::evaluate(std::uint64_t first, std::uint32_t rows) {
  points_.clear();
  predictions_.clear();
  records_.clear();
  summaries_.clear();
  samples_.clear();
  // The rows refer to elements of these vectors, which have room for a block. Each is noted at once, while a cache
  // still holds it.
  const bool served = job_->study().workloads.front().load.has_value();
  for (std::uint64_t row = first; row < first + rows; ++row) {
    const std::uint64_t id = layout_->point(row);
    const PointIndex& point = points_.emplace_back(job_->space().point(id));
    Prediction& prediction = predictions_.emplace_back(MadeInPlace{[&] { return predict(id, point); }});
    sample(id);
    if (served && stopped()) return false;
    results::PointRecord& record = records_.emplace_back(id, point.plan, job_->workload(point.setting),
                                                         job_->hardware(point.setting), prediction);
    if (prediction.status != Status::ok) continue;
    record.goodput = goodput();
    if (summaries_.back()) record.faults = &*summaries_.back();
    record.assessment = assessment(point.setting, point.plan);
    job_->limits().judge(record, prediction);
  }
  return true;
}

/// The assessment of a point; neighbouring points share what is known about their setting.
Assessment BlockWorker::assessment(std::uint64_t setting, const ParallelPlan& plan) {
  if (!assessed_ || !same_regime(job_->study(), *assessed_, setting))
    finding_ = assess_setting(job_->study(), setting);
  assessed_ = setting;
  return evidence::assess_plan(finding_, plan);
}

/// The goodput of the point sampled last, which is ok; NaN where there is none.
double BlockWorker::goodput() const {
  const std::optional<Reliability>& reliability = job_->study().reliability;
  if (!reliability) return std::numeric_limits<double>::quiet_NaN();
  const std::optional<results::FaultSummary>& faults = summaries_.back();
  return goodput_share(*reliability, points_.back().plan.gpus(), faults ? faults->mean : 0);
}

/// Samples the faults of the point predicted last.
void BlockWorker::sample(std::uint64_t point_id) {
  summaries_.emplace_back();
  const FaultDraws* const draws = job_->fault_draws();
  const Prediction& healthy = predictions_.back();
  if (draws == nullptr || healthy.status != Status::ok) return;
  const PointIndex& point = points_.back();
  const std::size_t before = samples_.size();
  if (evaluator_ == nullptr && samples()) {
    Evaluator& evaluator = evaluators_.of(point.setting);
    evaluator.watch([this](Seconds) { return samples(); });
    if (evaluator.evaluate(point.plan).status == Status::ok) evaluator_ = &evaluator;
  }
  if (evaluator_ != nullptr && samples()) {
    summaries_.back() =
        sample_faults(*draws, point_id, healthy, job_->study().phase(), *evaluator_, samples_);
    if (samples()) return;
  }
  samples_.resize(before);  // drop the rows of sampling that was ended early
  summaries_.back().reset();
  ++unsampled_;
}

Prediction BlockWorker::predict(std::uint64_t id, const PointIndex& point) {
  evaluator_ = nullptr;
  if (const Prediction* const known = known_.find(id)) return *known;
  if (!job_->admits(point.plan, job_->workload(point.setting))) {
    Prediction rejected;
    rejected.status = Status::constraint;
    rejected.reason = Reason::constraint;
    return rejected;
  }
  evaluator_ = &evaluators_.of(point.setting);
  if (stop_ != nullptr && job_->workload(point.setting).load)
    evaluator_->watch([this](Seconds) { return !stopped(); });
  return evaluator_->evaluate(point.plan);
}

}  // namespace shardscape::sweep
