// Looks at every plan on one number of GPUs after the other, in parallel: floors cut most of them off, the rest are
// simulated, and the nearest misses are kept where no plan serves the load.
#include "sweep/capacity/find_capacity.h"

#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/token_prices.h"
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
  bool done = false;
};

/// A plan that a floor cut off, and by how much it misses at least.
struct Cut {
  double at_least = 0;
  std::uint64_t id = 0;
  std::int64_t gpus = 0;
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
    std::vector<double> prices;  // of the devices of all pools
    for (const System& system : job.study().systems) {
      prices.push_back(system.device.price_per_hour);
      if (system.prefill_device) prices.push_back(system.prefill_device->price_per_hour);
    }
    const auto [least, most] = std::ranges::minmax(prices);
    least_price_ = least;
    by_price_ = least > 0 && least < most;
  }

  CapacityAnswer run(std::size_t workload) {
    CapacityAnswer answer;
    answer.workload = workload;
    answer.by_price = by_price_;
    first_ = 0;
    for (std::size_t count = 0; count < job_.study().gpu_counts.size() && answer.complete; ++count) {
      const std::int64_t gpus = job_.study().gpu_counts[count];
      if (answer.best && !may_cost_less(gpus, *answer.best)) break;
      if (options_.tell) options_.tell({workload, gpus, answer.simulated.size()});
      std::optional<CapacityPoint> nearest;  // on so many
      for (Looked& looked : look_at(workload, count)) {
        if (!looked.done) continue;
        const CapacityPoint& at = looked.point;
        if (!at.misses.empty() && (!nearest || says_more(at, *nearest))) nearest = at;
        take(std::move(looked), answer);
      }
      if (!answer.best && nearest) answer.fewer = std::move(nearest);
      if (answer.best && first_ == 0) first_ = answer.best->gpus;
      answer.complete = goes_on();
      if (answer.complete) answer.most_gpus = gpus;
    }
    (answer.best ? answer.nearest : answer.fewer).reset();
    if (answer.best && answer.best->gpus != first_) answer.fewer.reset();
    std::optional<CapacityPoint>& nearest = answer.best ? answer.fewer : answer.nearest;
    if (answer.fewer) std::erase_if(cut_, [&](const Cut& cut) { return cut.gpus != answer.fewer->gpus; });
    if (answer.complete && nearest && nearest->simulated) look_nearer(answer, *nearest);
    cut_.clear();
    std::ranges::sort(answer.kills, [](const CapacityKill& a, const CapacityKill& b) {
      return a.plans == b.plans ? a.reason < b.reason : a.plans > b.plans;
    });
    return answer;
  }

 private:
  [[nodiscard]] bool goes_on() const { return !options_.go_on || options_.go_on(); }

  /// Plans that floors cut off miss at least what the floors show: those that may still miss by less than what was
  /// simulated are simulated, too, the least first, as many side by side as there are threads. Where this is stopped
  /// the nearest is that of what was seen; that no plan does is proved all the same.
  void look_nearer(CapacityAnswer& answer, CapacityPoint& nearest) {
    std::ranges::sort(cut_, {}, [](const Cut& cut) { return std::pair(cut.at_least, cut.id); });
    const auto settled = [&](const Cut& cut) { return keeps_up(nearest) && cut.at_least >= nearest.worst(); };
    for (std::span<const Cut> left = cut_; !left.empty() && !settled(left.front()) && goes_on();) {
      // A plan for each thread. Those that would not have been come to one after the other are dropped.
      std::vector<Looked> next;
      for (const Cut& cut : left.first(std::min(left.size(), static_cast<std::size_t>(options_.threads))))
        next.push_back({CapacityFate::latency_floor, at(cut.id, cut.gpus), false});
      do_all(next, [this](Looked& looked) { simulate(looked); });
      for (std::size_t i = 0; i < next.size() && next[i].done && !settled(left[i]); ++i) {
        --answer.fates[CapacityFate::latency_floor];
        ++answer.fates[next[i].fate];
        CapacityPoint& point = next[i].point;
        if (!point.simulated) continue;
        if (says_more(point, nearest)) nearest = point;
        answer.simulated.push_back(std::move(point));
      }
      left = left.subspan(next.size());
    }
    std::ranges::sort(answer.simulated, {}, &CapacityPoint::id);
  }

  /// Whether some plan on so many GPUs, more than those of `best`, may cost less.
  [[nodiscard]] bool may_cost_less(std::int64_t gpus, const CapacityPoint& best) const {
    return by_price_ && static_cast<double>(gpus) * least_price_ < best.cost_per_hour;
  }

  /// The plan of an id, which nothing is known of.
  [[nodiscard]] CapacityPoint at(std::uint64_t id, std::int64_t gpus) const {
    CapacityPoint point{id, job_.space().point(id), gpus, {}, false, {}};
    const std::size_t system = point.point.setting / job_.study().workloads.size();
    point.cost_per_hour =
        static_cast<double>(gpus) * price_per_hour(job_.study().systems[system], point.point.plan);
    return point;
  }

  /// Looks at all by `look`, in parallel; those that a stop leaves are not done.
  template <class Look>
  void do_all(std::vector<Looked>& all, Look look) const {
    tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
      if (!goes_on()) return;
      look(all[i]);
      all[i].done = goes_on();
    });
  }

  /// All plans for the workload on one of the numbers of GPUs, by id.
  std::vector<Looked> look_at(std::size_t workload, std::size_t count) {
    const auto [first, end] = job_.space().points_on(count);
    std::vector<Looked> all;
    for (std::uint64_t id = first; id < end; ++id) {
      CapacityPoint point = at(id, job_.study().gpu_counts[count]);
      if (point.point.setting % job_.study().workloads.size() != workload) continue;
      all.push_back({CapacityFate::rule, std::move(point), false});
    }
    do_all(all, [this](Looked& looked) { look(looked); });
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
      if (cut_by_floors(looked)) return;
    }
    simulate(looked);
  }

  void simulate(Looked& looked) {
    CapacityPoint& at = looked.point;
    const auto& [setting, plan] = at.point;
    Evaluator& simulated = evaluators_.local().simulated.of(setting);
    simulated.watch([this](Seconds) { return goes_on(); });
    at.prediction = simulated.evaluate(plan);
    if (at.prediction.status != Status::ok) return void(looked.fate = fate_of(at.prediction.status));
    looked.fate = CapacityFate::simulated;
    at.simulated = true;
    const bool overloaded = at.prediction.load.sustained_per_s > 0;
    if (overloaded) at.misses.push_back(overload_of(at));
    for (const Miss& miss : job_.limits().misses(record(at))) {
      if (miss.reason >= results::kFirstLimitReason && !(overloaded && is_latency(limit_of(miss))))
        at.misses.push_back(miss);
    }
  }

  [[nodiscard]] results::PointRecord record(const CapacityPoint& at) const {
    return {at.id, at.point.plan, job_.workload(at.point.setting), job_.hardware(at.point.setting),
            at.prediction};
  }

  [[nodiscard]] const results::Limit& limit_of(const Miss& miss) const {
    return job_.limits().limits()[miss.reason - results::kFirstLimitReason];
  }

  static bool is_latency(const results::Limit& limit) {
    constexpr std::string_view kLatencies[] = {"ttft_", "tpot_", "itl_", "e2e_"};
    return std::ranges::any_of(kLatencies,
                               [&](std::string_view name) { return limit.column.starts_with(name); });
  }

  /// By how much more requests come than the point keeps up with, or than its floors let it.
  [[nodiscard]] Miss overload_of(const CapacityPoint& at) const {
    const double offered = job_.workload(at.point.setting).load->offered_per_s();
    return {static_cast<std::size_t>(Reason::overloaded), true,
            std::max(0.0, offered / at.prediction.load.sustained_per_s - 1)};
  }

  /// Whether the floors in the prediction show that the plan misses something. They are floors of latencies and of the
  /// rate that holds alone; memory is as it is.
  bool cut_by_floors(Looked& looked) const {
    CapacityPoint& at = looked.point;
    const Miss overload = overload_of(at);
    if (overload.by > 0) at.misses.push_back(overload);
    for (const Miss& miss : job_.limits().misses(record(at))) {
      if (miss.reason < results::kFirstLimitReason) continue;
      const results::Limit& limit = limit_of(miss);
      const bool upper =
          limit.relation == results::Relation::at_most || limit.relation == results::Relation::below;
      if ((upper && is_latency(limit)) || limit.column == "memory_peak_bytes") at.misses.push_back(miss);
    }
    if (at.misses.empty()) return false;
    looked.fate = overload.by > 0 ? CapacityFate::rate_floor : CapacityFate::latency_floor;
    return true;
  }

  [[nodiscard]] BestPoint ranked(const CapacityPoint& at) const {
    return {job_.columns().number(objective_, record(at)), at.id};
  }
  /// Both miss nothing. Without prices that differ all are on as many GPUs.
  [[nodiscard]] bool better(const CapacityPoint& a, const CapacityPoint& b) const {
    const auto bill = [&](const CapacityPoint& at) {
      return std::pair(by_price_ ? at.cost_per_hour : 0, at.gpus);
    };
    return bill(a) == bill(b) ? ranks_before(ranked(a), ranked(b), better_) : bill(a) < bill(b);
  }

  /// Whether the plan keeps up with the requests, or may as far as its floors show.
  static bool keeps_up(const CapacityPoint& point) {
    return point.misses.empty() || point.misses.front().reason >= results::kFirstLimitReason;
  }

  /// Floors do not show all that a plan would miss: one that was simulated says more. Nor do servers that fall behind.
  static bool says_more(const CapacityPoint& a, const CapacityPoint& b) {
    const auto says = [](const CapacityPoint& point) {
      return std::tuple(point.simulated, keeps_up(point), -point.worst(), ~point.id);
    };
    return says(a) > says(b);
  }

  void take(Looked looked, CapacityAnswer& answer) {
    ++answer.fates[looked.fate];
    CapacityPoint& at = looked.point;
    if (looked.fate == CapacityFate::rule) ++answer.rejected[at.prediction.reason];
    const bool simulated = looked.fate == CapacityFate::simulated;
    if (!simulated && at.misses.empty()) return;
    for (const Miss& miss : at.misses) {
      auto kill = std::ranges::find(answer.kills, miss.reason, &CapacityKill::reason);
      if (kill == answer.kills.end()) kill = answer.kills.insert(kill, {miss.reason, 0, miss.by});
      ++kill->plans;
      kill->least = std::min(kill->least, miss.by);
    }
    if (!answer.nearest || says_more(at, *answer.nearest)) answer.nearest = at;
    if (looked.fate == CapacityFate::latency_floor) cut_.push_back({at.worst(), at.id, at.gpus});
    if (!simulated) return;
    if (answer.least_simulated == 0) answer.least_simulated = at.gpus;
    if (at.misses.empty() && (!answer.best || better(at, *answer.best))) answer.best = at;
    answer.simulated.push_back(std::move(at));
  }

  const SweepJob& job_;
  const CapacityOptions& options_;
  tbb::enumerable_thread_specific<Evaluators> evaluators_;
  std::vector<Cut> cut_;  ///< by floors of latencies, for this workload
  std::size_t objective_ = 0;
  results::Better better_ = results::Better::smaller;
  double least_price_ = 0;  ///< of one device an hour, over all settings; 0: some has none
  bool by_price_ = false;   ///< devices have prices, which differ
  std::int64_t first_ = 0;  ///< the least number of GPUs with a plan that does, for this workload
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
    for (std::size_t workload = 0; workload < job.study().workloads.size(); ++workload)
      answers.push_back(search.run(workload));
  });
  return answers;
}

}  // namespace shardscape::sweep
