#include "sweep/runner/block_worker.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "sweep/study/evidence_of.h"

namespace shardscape::sweep {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
double load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

double load(results::ColumnType type, const std::byte* at) {
  switch (type) {
    case results::ColumnType::u8:
    case results::ColumnType::boolean:
      return load<std::uint8_t>(at);
    case results::ColumnType::i32:
      return load<std::int32_t>(at);
    case results::ColumnType::u64:
      return load<std::uint64_t>(at);
    case results::ColumnType::f4:
      return load<float>(at);
    case results::ColumnType::f8:
      return load<double>(at);
  }
  return 0;
}

}  // namespace

bool ranks_before(const BestPoint& a, const BestPoint& b, results::Better better) {
  if (a.objective == b.objective) return a.point_id < b.point_id;
  return better == results::Better::larger ? a.objective > b.objective : a.objective < b.objective;
}

std::optional<Objective> first_objective(const SweepJob& job) {
  if (job.study().objectives.empty()) return std::nullopt;
  const results::ColumnInfo* const column = job.columns().find(job.study().objectives.front());
  if (column == nullptr) return std::nullopt;
  const auto index = static_cast<std::size_t>(column - job.columns().columns().data());
  return Objective{index, column->type, column->better};
}

void add(Tally& whole, const Tally& part, results::Better better) {
  for (std::size_t i = 0; i < whole.by_status.size(); ++i) whole.by_status[i] += part.by_status[i];
  for (std::size_t i = 0; i < whole.by_reason.size(); ++i) whole.by_reason[i] += part.by_reason[i];
  if (part.best && (!whole.best || ranks_before(*part.best, *whole.best, better))) whole.best = part.best;
}

BlockWorker::BlockWorker(const SweepJob& job, const results::BlockLayout& layout,
                         const EvaluatorFactory& factory, const KnownPredictions& known)
    : job_(&job),
      layout_(&layout),
      factory_(&factory),
      known_(job.fault_draws() == nullptr ? known : KnownPredictions()),
      objective_(first_objective(job)),
      encoder_(job.columns(), layout.rows_per_block) {
  const std::uint32_t rows = layout.rows_per_block;
  points_.reserve(rows);
  predictions_.reserve(rows);
  records_.reserve(rows);
}

FinishedBlock BlockWorker::run(std::uint64_t block) {
  const Clock::time_point start = Clock::now();
  evaluate(layout_->first_row(block), layout_->rows_of(block));
  evaluate_seconds_ += seconds_since(start);

  FinishedBlock finished;
  for (const Prediction& prediction : predictions_) {
    ++finished.tally.by_status[static_cast<std::size_t>(prediction.status)];
    ++finished.tally.by_reason[static_cast<std::size_t>(prediction.reason)];
  }
  finished.tally.best = best_of_rows();
  const Clock::time_point evaluated = Clock::now();
  finished.block = encoder_.encode(block, records_);
  finished.block.samples = std::move(samples_);
  encode_seconds_ += seconds_since(evaluated);
  return finished;
}

void BlockWorker::evaluate(std::uint64_t first, std::uint32_t rows) {
  points_.clear();
  predictions_.clear();
  records_.clear();
  summaries_.clear();
  samples_.clear();
  ids_.clear();
  for (std::uint64_t row = first; row < first + rows; ++row) {
    ids_.push_back(layout_->point(row));
    points_.push_back(job_->space().point(ids_.back()));
    predictions_.push_back(predict(ids_.back(), points_.back()));
    sample(ids_.back());
  }
  for (std::size_t i = 0; i < rows; ++i) {  // neither vector grows from here on
    const std::uint64_t setting = points_[i].setting;
    records_.push_back({ids_[i], points_[i].plan, job_->workload(setting), job_->hardware(setting),
                        predictions_[i], goodput(i), summaries_[i] ? &*summaries_[i] : nullptr,
                        predictions_[i].status == Status::ok ? assessment(setting) : Assessment()});
  }
}

/// Neighbouring points share it.
const Assessment& BlockWorker::assessment(std::uint64_t setting) {
  if (assessed_ != setting) assessment_ = assess_setting(job_->study(), setting).assessment;
  assessed_ = setting;
  return assessment_;
}

/// Of row i of the block: NaN where there is none.
double BlockWorker::goodput(std::size_t i) const {
  const std::optional<Reliability>& reliability = job_->study().reliability;
  if (!reliability || predictions_[i].status != Status::ok) return std::numeric_limits<double>::quiet_NaN();
  return goodput_share(*reliability, job_->study().gpus, summaries_[i] ? summaries_[i]->mean : 0);
}

/// The fault samples of the point predicted last.
void BlockWorker::sample(std::uint64_t point_id) {
  summaries_.emplace_back();
  const FaultDraws* const draws = job_->fault_draws();
  const Prediction& healthy = predictions_.back();
  if (draws == nullptr || healthy.status != Status::ok) return;
  summaries_.back() = sample_faults(*draws, point_id, healthy, job_->study().phase(), *evaluator_, samples_);
}

Prediction BlockWorker::predict(std::uint64_t id, const PointIndex& point) {
  if (const Prediction* const known = known_.find(id)) return *known;
  if (!job_->admits(point.plan, job_->workload(point.setting))) {
    Prediction rejected;
    rejected.status = Status::constraint;
    rejected.reason = Reason::constraint;
    return rejected;
  }
  if (setting_index_ != point.setting) {
    auto setting = std::make_unique<Setting>(job_->study().setting(point.setting));
    auto evaluator =
        (*factory_)(*setting, placement_of(job_->study(), point.setting / job_->study().workloads.size()));
    if (evaluator_) evaluator->take_over(*evaluator_);
    evaluator_ = std::move(evaluator);  // before the setting that the last one refers to
    setting_ = std::move(setting);
    setting_index_ = point.setting;
  }
  return evaluator_->evaluate(point.plan);
}

std::optional<BestPoint> BlockWorker::best_of_rows() {
  if (!objective_) return std::nullopt;
  const std::size_t width = results::size_of(objective_->type);
  objective_values_.resize(records_.size() * width);
  job_->columns().put(objective_->column, records_, objective_values_.data());
  std::optional<BestPoint> best;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const BestPoint point{load(objective_->type, objective_values_.data() + i * width), records_[i].point_id};
    if (predictions_[i].status != Status::ok || std::isnan(point.objective)) continue;
    if (!best || ranks_before(point, *best, objective_->better)) best = point;
  }
  return best;
}

}  // namespace shardscape::sweep
