// Searches simulated loads: finds the floors of all points, sorts them, and simulates from the best floor on in rounds
// that grow, until no floor can still enter the answer.
#include "sweep/search/served_search.h"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <string_view>
#include <vector>

#include "sweep/runner/setting_evaluators.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

namespace {

using results::Better;
using results::Fate;

constexpr std::size_t kMostInRound = 64;

bool is_latency(std::string_view column) {
  return column.starts_with("ttft_") || column.starts_with("itl_") || column.starts_with("tpot_") ||
         column.starts_with("e2e_");
}
bool is_rate(std::string_view column) {
  return column == "requests_per_s" || column == "goodput_requests_per_s_per_gpu";
}

class ServedSearch {
 public:
  ServedSearch(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options)
      : job_(job),
        goal_(goal),
        options_(options),
        floors_([this] { return SettingEvaluators(job_.study(), options_.load_floors); }),
        simulated_([this] { return SettingEvaluators(job_.study(), options_.evaluator); }) {
    const auto columns = job.columns().columns();
    const auto column = std::ranges::find(columns, goal.objectives.front(), &results::ColumnInfo::name);
    objective_ = static_cast<std::size_t>(column - columns.begin());
    better_ = column->better;
    progress_.points = job.space().size();
  }

  SearchOutcome run() {
    std::size_t next = 0, most = 1;
    find_floors();
    while (next < waiting_.size() && !refused_ && !is_beyond(waiting_[next])) {
      progress_.bound = waiting_[next].objective;
      if (!goes_on()) break;
      std::size_t end = next;
      while (end < waiting_.size() && end < next + most && !is_beyond(waiting_[end]) && may_visit()) ++end;
      visit(next, end);
      next = end;
      most = std::min(2 * most, kMostInRound);
    }
    stopped_ = stopped_ || refused_;
    count(stopped_ ? Fate::open : Fate::bound) += waiting_.size() - next;
    return outcome(std::min(next, left_));
  }

 private:
  struct Visited {
    std::uint64_t id = 0;
    Prediction prediction;
    bool whole = false;  ///< not stopped within
  };

  std::uint64_t& count(Fate fate) { return progress_.counts[static_cast<std::size_t>(fate)]; }

  [[nodiscard]] double value(std::uint64_t id, const PointIndex& point, const Prediction& prediction) const {
    return job_.columns().number(
        objective_, {id, point.plan, job_.workload(point.setting), job_.hardware(point.setting), prediction});
  }

  /// Asked by any thread, within simulations, too; where the answer was no it stays so.
  [[nodiscard]] bool goes_on() {
    const std::lock_guard lock(asking_);
    stopped_ = stopped_ || (options_.go_on && !options_.go_on(progress_));
    return !stopped_;
  }
  /// Whether another point may be visited; not asked while any is.
  [[nodiscard]] bool may_visit() {
    refused_ = refused_ || (options_.may_visit && !options_.may_visit());
    return !refused_;
  }
  /// The evaluator of a setting, which ends what it does where the search is stopped.
  Evaluator& watched(SettingEvaluators& evaluators, std::uint64_t setting) {
    Evaluator& evaluator = evaluators.of(setting);
    evaluator.watch([this](Seconds) { return goes_on(); });
    return evaluator;
  }

  /// The best value that each point may have, the best first; those that are no results are counted, and so are those
  /// that are left where the search is stopped.
  void find_floors() {
    constexpr std::size_t kAtOnce = 1024;
    std::vector<BestPoint> all(job_.space().size());
    std::vector<Fate> fates(all.size(), Fate::open);
    const auto find = [&](std::size_t id) {
      const PointIndex point = job_.space().point(id);
      if (!job_.admits(point.plan, job_.workload(point.setting))) return void(fates[id] = Fate::constraint);
      const Prediction floor = watched(floors_.local(), point.setting).evaluate(point.plan);
      if (floor.status != Status::ok)
        return void(fates[id] = floor.status == Status::memory ? Fate::memory : Fate::rule);
      all[id] = {value(id, point, floor), id};
    };
    std::size_t found = 0;
    while (found < all.size() && goes_on()) {
      const std::size_t end = std::min(all.size(), found + kAtOnce);
      tbb::parallel_for(found, end, [&](std::size_t id) {
        if (goes_on()) find(id);
      });
      if (goes_on()) found = end;
    }
    count(Fate::open) += all.size() - found;
    for (std::size_t id = 0; id < found; ++id) {
      if (fates[id] == Fate::open) {
        waiting_.push_back(all[id]);
      } else {
        ++count(fates[id]);
      }
    }
    std::ranges::sort(waiting_,
                      [this](const BestPoint& a, const BestPoint& b) { return ranks_before(a, b, better_); });
  }

  /// Whether a point, and so all that wait behind it, cannot belong to the answer.
  [[nodiscard]] bool is_beyond(const BestPoint& floor) const {
    if (best_.size() < goal_.count) return false;
    const double worst = best_.back().objective, slack = 1 + goal_.within;
    return better_ == Better::larger ? floor.objective < worst * slack : floor.objective * slack > worst;
  }

  void visit(std::size_t first, std::size_t end) {
    std::vector<Visited> round(end - first);
    std::vector<double> values(round.size(), std::numeric_limits<double>::quiet_NaN());
    tbb::parallel_for(std::size_t{0}, round.size(), [&](std::size_t i) {
      const std::uint64_t id = waiting_[first + i].point_id;
      const PointIndex point = job_.space().point(id);
      if (!goes_on()) return;
      round[i] = {id, watched(simulated_.local(), point.setting).evaluate(point.plan)};
      round[i].whole = goes_on();
      if (round[i].whole && job_.judged(point.setting, point.plan, round[i].prediction).status == Status::ok)
        values[i] = value(id, point, round[i].prediction);
    });
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (!std::isnan(values[i])) offer({values[i], round[i].id});
      if (round[i].whole) visited_.push_back(round[i]);
      if (!round[i].whole) left_ = std::min(left_, first + i);
      ++count(round[i].whole ? Fate::visited : Fate::open);
    }
    if (!best_.empty()) progress_.best = best_.front();
  }

  void offer(const BestPoint& point) {
    const auto before = [this](const BestPoint& a, const BestPoint& b) {
      return ranks_before(a, b, better_);
    };
    best_.insert(std::ranges::upper_bound(best_, point, before), point);
    if (best_.size() > goal_.count) best_.pop_back();
  }

  /// `next`: the first point in waiting_ that was not visited.
  SearchOutcome outcome(std::size_t next) {
    SearchOutcome outcome;
    std::ranges::sort(visited_, {}, &Visited::id);
    const bool keep = visited_.size() <= kMostKeptPredictions;
    for (const Visited& visited : visited_) {
      outcome.visited.push_back(visited.id);
      if (keep) outcome.predictions.push_back(visited.prediction);
    }
    outcome.best = best_;
    outcome.info.counts = progress_.counts;
    outcome.info.complete = !stopped_;
    outcome.info.within = goal_.within;
    outcome.info.bound =
        next < waiting_.size() ? waiting_[next].objective : std::numeric_limits<double>::quiet_NaN();
    return outcome;
  }

  const SweepJob& job_;
  const SearchGoal& goal_;
  const SearchOptions& options_;
  tbb::enumerable_thread_specific<SettingEvaluators> floors_, simulated_;
  std::size_t objective_ = 0;
  Better better_ = Better::smaller;
  SearchProgress progress_;
  std::vector<BestPoint> waiting_;  ///< by the best value that they may have
  std::vector<BestPoint> best_;     ///< the answer so far, best first
  std::vector<Visited> visited_;
  std::size_t left_ = std::numeric_limits<std::size_t>::max();  ///< the first that a stopped round left
  std::mutex asking_;                                           ///< guards stopped_ and options_.go_on
  bool stopped_ = false, refused_ = false;
};

}  // namespace

std::string why_no_load_floors(const SweepJob& job, const SearchGoal& goal) {
  const Study& study = job.study();
  const std::string& objective = goal.objectives.front();
  if (!study.workloads.front().load)
    return "serving in the steady closed loop has none (a load with client, request_rate, sessions or trace "
           "has)";
  if (goal.front) return "a front of servers has none";
  if (study.faults) return "serving under faults has none";
  if (study.mode != ExecutionMode::hierarchical) return "serving in the flattened mode has none";
  for (std::size_t system = 0; system < study.systems.size(); ++system)
    if (placement_of(study, system) != PlacementChoice::plain)
      return "placements that are searched have none in serving";
  if (is_latency(objective)) return "";
  if (!is_rate(objective)) return objective + " has none in serving; latencies and requests per second have";
  if (study.workloads.front().load->statistic == ClientStatistic::run) return "";
  return objective + " has none with statistic: steady, which counts what was begun before";
}

SearchOutcome search_served(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options) {
  if (options.together != nullptr && options.together->rank() != 0) return {};
  return ServedSearch(job, goal, options).run();
}

}  // namespace shardscape::sweep
