// Executes the shown rows of a result file one after the other in flattened mode, within limits of events that are
// estimated before and counted while executing.
#include "sweep/cli/reports/confirm.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "engine/simulate.h"
#include "engine/spec/plan.h"
#include "engine/spec/scenario.h"
#include "results_schema/rows/records.h"
#include "sweep/cli/reports/near_misses.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/space/design_space.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::cli {

namespace {

constexpr double kNotExecuted = std::numeric_limits<double>::quiet_NaN();

/// The values that a result file would hold of a prediction in some columns.
class ExecutedValues {
 public:
  ExecutedValues(Phase phase, std::span<const std::string> columns)
      : table_(phase, {}, {.load = true}), columns_(columns) {}

  double of(std::size_t column, const sweep::PointIndex& point, const WorkloadSpec& workload,
            const Prediction& prediction) const {
    const std::span<const results::ColumnInfo> infos = table_.columns();
    const auto info = std::ranges::find(infos, columns_[column], &results::ColumnInfo::name);
    // A column about faults or hardware, which an execution does not determine.
    if (info == infos.end()) return kNotExecuted;
    const results::PointRecord record{0, point.plan, workload, {}, prediction};
    std::vector<std::byte> packed(results::size_of(info->type));
    table_.put(static_cast<std::size_t>(info - infos.begin()), {&record, 1}, packed.data());
    std::vector<double> number;
    results::append_numbers(info->type, packed, 1, number);
    return number.front();
  }

 private:
  results::ColumnTable table_;
  std::span<const std::string> columns_;
};

/// Executes plans of the settings of a study.
class RowExecutor {
 public:
  RowExecutor(const sweep::Study& study, const std::function<const char*()>& why_stop)
      : study_(study), why_stop_(why_stop) {
    options_.mode = ExecutionMode::flattened;
  }

  struct Outcome {
    Prediction prediction;
    std::int64_t events = 0;
  };
  const Setting& setting_of(const sweep::PointIndex& point) {
    if (setting_index_ == point.setting) return *setting_;
    simulator_.reset();  // before its setting is replaced, which it refers to
    setting_ = std::make_unique<Setting>(study_.setting(point.setting));
    setting_index_ = point.setting;
    return *setting_;
  }
  /// Why no row is executed any more; null as long as some may be.
  const char* stopped() {
    if (stopped_ == nullptr && why_stop_) stopped_ = why_stop_();
    return stopped_;
  }
  /// Executes a plan. The outcome is invalid if it was stopped meanwhile.
  Outcome run(const sweep::PointIndex& point, std::int64_t most_events) {
    const Setting& setting = setting_of(point);
    if (!simulator_ || options_.most_events != most_events) {
      options_.most_events = most_events;
      simulator_.emplace(setting, options_);
      simulator_->watch([this](Seconds) { return stopped() == nullptr; });
    }
    Details details;
    Outcome outcome{simulator_->run(point.plan, {}, &details), details.events};
    // In training, details count the events of all ranks, also of those that were not executed.
    if (details.executed_ranks > 0)
      outcome.events = outcome.events / static_cast<std::int64_t>(point.plan.gpus()) * details.executed_ranks;
    return outcome;
  }

 private:
  const sweep::Study& study_;
  const std::function<const char*()>& why_stop_;
  const char* stopped_ = nullptr;
  SimulateOptions options_;
  std::optional<std::uint64_t> setting_index_;
  std::unique_ptr<Setting> setting_;
  std::optional<Simulator> simulator_;
};

constexpr const char* kNoStudy = "the file does not hold its study";

std::string why_none(const std::optional<sweep::Study>& study) {
  if (!study) return kNoStudy;
  if (study->mode == ExecutionMode::flattened) return "the file holds executed times";
  for (std::size_t system = 0; system < study->systems.size(); ++system) {
    if (placement_of(*study, system) != sweep::PlacementChoice::plain)
      return "its ranks lie where a search has put them";
  }
  return "";
}

/// The largest rough number of events with which rows are tried: like ranks are executed once, so that behind switches
/// the true number may be a hundredth. Programs of so many take up to 0.3 s of CPU to build (of experts on 64 ranks).
constexpr double kMostTrialRough = 5.0 * kMostUnaskedEvents;

/// A rough number of events of an execution, from the sizes of the plan and before anything is built. Compared with the
/// true number it is 0.4 to 0.8 times as many for plans of llama3.1-70b-64xa100 and mixtral-8x7b-64xh100, 5 times as
/// many for a server of llama3.1-70b-serving-16xa100, an eighth where one ring of 1,152 ranks reduces all gradients.
double rough_events(const Setting& setting, const ParallelPlan& plan) {
  const double gpus = static_cast<double>(plan.gpus()), layers = static_cast<double>(setting.model.layers);
  if (setting.workload.phase == Phase::inference) {
    constexpr double kOfThousandTokens = 1300;  // per layer and rank, in llama3.1-70b-serving-16xa100
    const auto tokens = static_cast<double>(setting.workload.prompt_tokens + setting.workload.output_tokens);
    return gpus * layers * tokens / 1000 * kOfThousandTokens * (1 + plan.expert / 8.0);
  }
  // Events of a layer's operators forward and backward, of the messages of its rings and exchanges, and of buckets of
  // gradients.
  constexpr double kOperators = 20, kOfRings = 8, kOfExchanges = 4, kOfGradients = 80;
  const auto batch = static_cast<double>(setting.workload.global_batch);
  const double microbatches = std::max(1.0, batch / (static_cast<double>(plan.data) * plan.microbatch));
  const double of_layer = kOperators + kOfRings * (plan.tensor + plan.context) + kOfExchanges * plan.expert;
  return gpus * (layers / plan.pipeline * microbatches * of_layer + kOfGradients * plan.data);
}

}  // namespace

Executions execute_rows(const results::ResultReader& reader, std::span<const std::uint64_t> rows,
                        std::span<const std::string> columns, const ConfirmWish& wish) {
  Executions done;
  done.values.assign(columns.size(), std::vector<double>(rows.size(), kNotExecuted));
  if (wish.rows == 0 || rows.empty()) return done;
  std::optional<sweep::Study> read = read_study(reader);
  done.why_none = why_none(read);
  if (!done.why_none.empty()) return done;
  if (wish.why_stop) done.why_stopped = wish.why_stop();
  if (done.why_stopped != nullptr) {
    done.stopped = std::min(rows.size(), wish.rows);
    return done;
  }
  const std::optional<StoredStudy> stored = with_points(reader, std::move(read));
  if (!stored) {
    done.why_none = kNoStudy;
    return done;
  }

  const double start = cpu_seconds();
  const auto& [study, space] = *stored;
  const ExecutedValues executed(study.phase(), columns);
  RowExecutor executor(study, wish.why_stop);
  std::int64_t left = kMostUnaskedEvents;
  bool tries = true;  // rows whose rough number is too large, until one of them is given up
  for (std::size_t row = 0; row < std::min(rows.size(), wish.rows); ++row) {
    if (executor.stopped() != nullptr) {
      ++done.stopped;
      continue;
    }
    const std::uint64_t id = reader.point_ids({rows[row], rows[row] + 1}).at(0);
    if (id >= space.size()) continue;
    const sweep::PointIndex point = space.point(id);
    const double rough = rough_events(executor.setting_of(point), point.plan);
    const bool trial = !wish.asked && rough > static_cast<double>(left);
    if (trial ? !tries || rough > kMostTrialRough : rough > static_cast<double>(kMostRowEvents)) {
      ++(trial ? done.left : done.too_long);
      continue;
    }
    const std::int64_t most = trial ? kMostTrialEvents : wish.asked ? kMostRowEvents : kMostUnaskedEvents;
    const RowExecutor::Outcome outcome = executor.run(point, most);
    if (executor.stopped() != nullptr) {
      ++done.stopped;
      continue;
    }
    if (outcome.prediction.status != Status::ok && trial) {
      tries = false;
      ++done.given_up;
      continue;
    }
    if (outcome.prediction.status != Status::ok) {
      ++done.too_long;
      left = 0, tries = false;  // it may have been given up late: allow one such row and no more
      continue;
    }
    ++done.rows;
    left = std::max<std::int64_t>(0, left - outcome.events);
    for (std::size_t column = 0; column < columns.size(); ++column)
      done.values[column][row] =
          executed.of(column, point, study.workload_of(point.setting), outcome.prediction);
  }
  done.why_stopped = executor.stopped();
  done.cpu_seconds = cpu_seconds() - start;
  return done;
}

}  // namespace shardscape::cli
