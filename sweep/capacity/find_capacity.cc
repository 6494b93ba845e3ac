#include "sweep/capacity/find_capacity.h"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "sweep/runner/block_worker.h"
#include "sweep/runner/setting_evaluators.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

namespace {

using Miss = results::LimitCheck::Miss;
using results::ColumnInfo;

struct Looked {
  CapacityFate fate = CapacityFate::rule;
  CapacityPoint point;
};

CapacityFate fate_of(Status status) {
  return status == Status::memory ? CapacityFate::memory : CapacityFate::rule;
}

/// The evaluators of one thread.
struct Evaluators {
  Evaluators(const SweepJob& job, const CapacityOptions& options)
      : simulated(job.study(), options.evaluator), floors(job.study(), options.floors) {}
  SettingEvaluators simulated, floors;
};

class Search {
 public:
  Search(const SweepJob& job, const CapacityOptions& options)
      : job_(job), options_(options), evaluators_([this] { return Evaluators(job_, options_); }) {
    const std::string& objective = job.study().objectives.front();
    const auto columns = job.columns().columns();
    const auto column = std::ranges::find(columns, objective, &ColumnInfo::name);
    objective_ = static_cast<std::size_t>(column - columns.begin());
    better_ = column->better;
  }

  CapacityAnswer run(std::size_t workload) {
    CapacityAnswer answer;
    answer.workload = workload;
    for (std::size_t count = 0; count < job_.study().gpu_counts.size() && !answer.best; ++count) {
      const std::int64_t gpus = job_.study().gpu_counts[count];
      if (options_.go_on && !options_.go_on({workload, gpus, answer.simulated.size()})) {
        answer.complete = false;
        break;
      }
      std::vector<Looked> all = look_at(workload, count);
      if (stopped()) {
        answer.complete = false;
        break;
      }
      for (Looked& looked : all) take(std::move(looked), answer);
      answer.most_gpus = gpus;
    }
    if (answer.best) answer.nearest.reset();
    std::ranges::sort(answer.kills, [](const CapacityKill& a, const CapacityKill& b) {
      return a.plans == b.plans ? a.reason < b.reason : a.plans > b.plans;
    });
    return answer;
  }

 private:
  [[nodiscard]] bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  /// All plans for the workload on one of the numbers of GPUs, by id.
  std::vector<Looked> look_at(std::size_t workload, std::size_t count) {
    const auto [first, end] = job_.space().points_on(count);
    std::vector<Looked> all;
    for (std::uint64_t id = first; id < end; ++id) {
      const PointIndex point = job_.space().point(id);
      if (point.setting % job_.study().workloads.size() != workload) continue;
      all.push_back({CapacityFate::rule, {id, point, job_.study().gpu_counts[count], {}, false, {}}});
    }
    tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
      if (!stopped()) look(all[i]);
    });
    return all;
  }

  void look(Looked& looked) {
    CapacityPoint& at = looked.point;
    const auto& [setting, plan] = at.point;
    const WorkloadSpec& workload = job_.workload(setting);
    if (!job_.admits(plan, workload)) return void(looked.fate = CapacityFate::constraint);
    Evaluators& evaluators = evaluators_.local();
    const bool plain =
        placement_of(job_.study(), setting / job_.study().workloads.size()) == PlacementChoice::plain;
    // Two pools have no floors.
    if (options_.use_floors && plain && !plan.disaggregated()) {
      at.prediction = evaluators.floors.of(setting).evaluate(plan);
      if (at.prediction.status != Status::ok) return void(looked.fate = fate_of(at.prediction.status));
      if (cut_by_floors(workload, looked)) return;
    }
    at.prediction = evaluators.simulated.of(setting).evaluate(plan);
    if (at.prediction.status != Status::ok) return void(looked.fate = fate_of(at.prediction.status));
    looked.fate = CapacityFate::simulated;
    at.simulated = true;
    at.misses = job_.limits().misses(record(at));
  }

  [[nodiscard]] results::PointRecord record(const CapacityPoint& at) const {
    return {at.id, at.point.plan, job_.workload(at.point.setting), job_.hardware(at.point.setting),
            at.prediction};
  }

  /// Whether the floors in the prediction show that the plan misses something. They are floors of latencies alone;
  /// memory is as it is.
  bool cut_by_floors(const WorkloadSpec& workload, Looked& looked) const {
    CapacityPoint& at = looked.point;
    const double offered = workload.load->offered_per_s(), most = at.prediction.load.sustained_per_s;
    if (offered > most)
      at.misses.push_back({static_cast<std::size_t>(Reason::overloaded), true, offered / most - 1});
    for (const Miss& miss : job_.limits().misses(record(at))) {
      if (miss.reason < results::kFirstLimitReason) continue;  // the rate that holds is a floor here
      const results::Limit& limit = job_.limits().limits()[miss.reason - results::kFirstLimitReason];
      const bool upper =
          limit.relation == results::Relation::at_most || limit.relation == results::Relation::below;
      const std::string_view name = limit.column;
      const bool latency = name.starts_with("ttft_") || name.starts_with("tpot_") ||
                           name.starts_with("itl_") || name.starts_with("e2e_");
      if ((upper && latency) || name == "memory_peak_bytes") at.misses.push_back(miss);
    }
    if (at.misses.empty()) return false;
    looked.fate = offered > most ? CapacityFate::rate_floor : CapacityFate::latency_floor;
    return true;
  }

  [[nodiscard]] BestPoint ranked(const CapacityPoint& at) const {
    return {job_.columns().number(objective_, record(at)), at.id};
  }

  void take(Looked looked, CapacityAnswer& answer) const {
    ++answer.fates[static_cast<std::size_t>(looked.fate)];
    CapacityPoint& at = looked.point;
    const bool simulated = looked.fate == CapacityFate::simulated;
    if (!simulated && at.misses.empty()) return;
    for (const Miss& miss : at.misses) {
      auto kill = std::ranges::find(answer.kills, miss.reason, &CapacityKill::reason);
      if (kill == answer.kills.end()) kill = answer.kills.insert(kill, {miss.reason, 0, miss.by});
      ++kill->plans;
      kill->least = std::min(kill->least, miss.by);
    }
    // Floors do not show all that a plan would miss: one that was simulated says more.
    const bool says_more = !answer.nearest || (simulated && !answer.nearest->simulated);
    const bool says_as_much = answer.nearest && simulated == answer.nearest->simulated;
    if (says_more || (says_as_much && at.worst() < answer.nearest->worst())) answer.nearest = at;
    if (!simulated) return;
    if (answer.least_simulated == 0) answer.least_simulated = at.gpus;
    if (at.misses.empty() && (!answer.best || ranks_before(ranked(at), ranked(*answer.best), better_)))
      answer.best = at;
    answer.simulated.push_back(std::move(at));
  }

  const SweepJob& job_;
  const CapacityOptions& options_;
  tbb::enumerable_thread_specific<Evaluators> evaluators_;
  std::size_t objective_ = 0;
  results::Better better_ = results::Better::smaller;
};

}  // namespace

double CapacityPoint::worst() const {
  double most = 0;
  for (const Miss& miss : misses) most = std::max(most, miss.by);
  return most;
}

std::uint64_t CapacityAnswer::looked_at() const {
  return std::accumulate(fates.begin(), fates.end(), std::uint64_t{0});
}

std::vector<CapacityAnswer> find_capacity(const SweepJob& job, const CapacityOptions& options) {
  const auto threads = static_cast<std::size_t>(options.threads);
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(options.threads);
  std::vector<CapacityAnswer> answers;
  arena.execute([&] {
    Search search(job, options);
    for (std::size_t workload = 0; workload < job.study().workloads.size(); ++workload) {
      answers.push_back(search.run(workload));
      if (!answers.back().complete) break;
    }
  });
  return answers;
}

}  // namespace shardscape::sweep
