#include "sweep/cli/confirm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "engine/simulate.h"
#include "results_schema/records.h"
#include "sweep/cli/cpu_time.h"
#include "sweep/cli/near_misses.h"
#include "sweep/space/design_space.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::cli {

namespace {

constexpr double kNotExecuted = std::numeric_limits<double>::quiet_NaN();

/// What a result file would hold of a prediction in some columns.
class ExecutedValues {
 public:
  ExecutedValues(Phase phase, std::span<const std::string> columns) : table_(phase), columns_(columns) {}

  double of(std::size_t column, const sweep::PointIndex& point, const WorkloadSpec& workload,
            const Prediction& prediction) const {
    const std::span<const results::ColumnInfo> infos = table_.columns();
    const auto info = std::ranges::find(infos, columns_[column], &results::ColumnInfo::name);
    if (info == infos.end()) return kNotExecuted;  // of faults and hardware: executing says nothing of it
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
  RowExecutor(const sweep::Study& study, std::int64_t most_events) : study_(study) {
    options_.mode = ExecutionMode::flattened;
    options_.most_events = most_events;
  }

  struct Outcome {
    Prediction prediction;
    std::int64_t events = 0;
  };
  Outcome run(const sweep::PointIndex& point) {
    if (setting_index_ != point.setting) {
      simulator_.reset();  // before the setting that it refers to
      setting_ = std::make_unique<Setting>(study_.setting(point.setting));
      simulator_.emplace(*setting_, options_);
      setting_index_ = point.setting;
    }
    Details details;
    Outcome outcome{simulator_->run(point.plan, {}, &details), details.events};
    // Of training details count the events of all ranks.
    if (details.executed_ranks > 0)
      outcome.events = outcome.events / static_cast<std::int64_t>(point.plan.gpus()) * details.executed_ranks;
    return outcome;
  }

 private:
  const sweep::Study& study_;
  SimulateOptions options_;
  std::optional<std::uint64_t> setting_index_;
  std::unique_ptr<Setting> setting_;
  std::optional<Simulator> simulator_;
};

std::string why_none(const std::optional<sweep::Study>& study) {
  if (!study) return "the file does not hold its study";
  if (study->mode == ExecutionMode::flattened) return "the file holds executed times";
  for (std::size_t system = 0; system < study->systems.size(); ++system) {
    if (placement_of(*study, system) != sweep::PlacementChoice::plain)
      return "its ranks lie where a search has put them";
  }
  return "";
}

}  // namespace

Executions execute_rows(const results::ResultReader& reader, std::span<const std::uint64_t> rows,
                        std::span<const std::string> columns, const ConfirmWish& wish) {
  Executions done;
  done.values.assign(columns.size(), std::vector<double>(rows.size(), kNotExecuted));
  if (wish.rows == 0 || rows.empty()) return done;
  const std::optional<sweep::Study> study = stored_study(reader);
  done.why_none = why_none(study);
  if (!done.why_none.empty()) return done;

  const double start = cpu_seconds();
  const sweep::DesignSpace space(study->space, study->gpus, study->phase(), study->setting_count());
  const ExecutedValues executed(study->phase(), columns);
  RowExecutor executor(*study, wish.asked ? kMostRowEvents : kMostUnaskedEvents);
  std::int64_t events = 0;
  for (std::size_t row = 0; row < std::min(rows.size(), wish.rows); ++row) {
    const bool stopped = wish.stop != nullptr && wish.stop->load(std::memory_order_relaxed);
    if (stopped || (!wish.asked && events >= kMostUnaskedEvents)) {
      ++done.left;
      continue;
    }
    const std::uint64_t id = reader.point_ids({rows[row], rows[row] + 1}).at(0);
    if (id >= space.size()) continue;
    const sweep::PointIndex point = space.point(id);
    const RowExecutor::Outcome outcome = executor.run(point);
    if (outcome.prediction.status != Status::ok) {
      ++done.too_long;
      // It may have been given up late: one such row and no more.
      events += kMostUnaskedEvents;
      continue;
    }
    ++done.rows;
    events += outcome.events;
    for (std::size_t column = 0; column < columns.size(); ++column)
      done.values[column][row] = executed.of(
          column, point, study->workloads[point.setting % study->workloads.size()], outcome.prediction);
  }
  done.cpu_seconds = cpu_seconds() - start;
  return done;
}

}  // namespace shardscape::cli
