#include "sweep/compare/waterfall.h"

#include <cmath>

#include "engine/network/groups/rank_group.h"
#include "engine/simulate.h"

namespace shardscape::compare {

namespace {

bool computes(TimeClass time_class) {
  return time_class == TimeClass::compute || time_class == TimeClass::recompute;
}

/// Tokens of a step times the parameters that each meets, per GPU.
double work_per_gpu(const Side& of) {
  const WorkloadSpec& workload = of.setting.workload;
  const double tokens =
      static_cast<double>(workload.global_batch) * static_cast<double>(workload.sequence_length);
  return tokens * of.setting.model.active_parameters() / static_cast<double>(of.setting.system.fabric.size());
}

/// Multiplications of the products of matrices on the critical rank, forward and backward.
double products(const Side& of) {
  double sum = 0;
  for (const OperatorRow& row : of.details.operators) {
    const auto& [batch, m, n, k] = row.product;
    if (row.phase != "recompute") sum += row.count * batch * m * n * k;
  }
  return sum;
}

/// b / a; 1 where that is no factor.
double factor(double a, double b) {
  const double ratio = b / a;
  return std::isfinite(ratio) && ratio > 0 ? ratio : 1;
}

/// The causes of computation, one after the other.
void add_compute(const Side& a, const Side& b, std::vector<Bar>& bars) {
  const Breakdown &from = a.prediction.breakdown, &to = b.prediction.breakdown;
  const Seconds before = from[TimeClass::compute], after = to[TimeClass::compute];
  const double work = factor(work_per_gpu(a), work_per_gpu(b));
  const double both = factor(products(a), products(b));
  const double known = products(a) > 0 && products(b) > 0 ? both : work;
  const auto add = [&](TimeClass time_class, Cause cause, Seconds difference) {
    bars.push_back({time_class, cause, {}, difference});
  };
  add(TimeClass::compute, Cause::work, (work - 1) * before);
  add(TimeClass::compute, Cause::share, (known - work) * before);
  add(TimeClass::compute, Cause::rate, after - known * before);
  const Seconds again = from[TimeClass::recompute], again_after = to[TimeClass::recompute];
  const bool same = a.plan.recompute == b.plan.recompute;
  const double at_rate = same ? known : factor((known * before).value(), after.value());
  // The same blocks are met again: they grow with the work, and what is left is rate. Others: they get the rate of
  // computation, and what is left is work.
  const Seconds first = (at_rate - 1) * again;
  add(TimeClass::recompute, same ? Cause::work : Cause::rate, first);
  add(TimeClass::recompute, same ? Cause::rate : Cause::work, again_after - again - first);
}

}  // namespace

std::string crossed_links(const Setting& setting, const ParallelPlan& plan, TimeClass time_class) {
  if (plan.disaggregated()) return "the links of its pools";  // each pool has groups of its own
  const network::PlanLayout layout(plan);
  const std::vector<DimensionSpec>& dimensions = setting.system.fabric.dimensions;
  std::vector<bool> crossed(dimensions.size());
  for (const ParallelGroup kind : enum_values<ParallelGroup>()) {
    if (class_of(kind) != time_class || (is_of_experts(kind) && !setting.model.moe)) continue;
    const network::RankGroup group = layout.group(kind);
    const auto reach = [&](std::int64_t rank) {
      for (std::size_t i = 0; i < dimensions.size(); rank /= dimensions[i++].size())
        if (rank % dimensions[i].size() != 0) crossed[i] = true;
    };
    for (std::size_t level = 0; level < static_cast<std::size_t>(group.depth); ++level)
      for (std::int64_t i = 1; i < group.levels[level].extent; ++i) reach(i * group.levels[level].stride);
    if (group.mirror.extent > 1) reach((group.mirror.extent - 1) * std::int64_t{group.mirror.stride});
  }
  std::string text;
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    if (crossed[i]) text += (text.empty() ? "" : " + ") + dimensions[i].name;
  return text;
}

std::vector<Bar> waterfall(const Side& a, const Side& b) {
  const bool training = a.setting.workload.phase == Phase::training;
  std::vector<Bar> bars;
  if (training) add_compute(a, b, bars);
  for (const TimeClass time_class : enum_values<TimeClass>()) {
    if (training && computes(time_class)) continue;
    const Seconds before = a.prediction.breakdown[time_class], after = b.prediction.breakdown[time_class];
    if (!is_communication(time_class)) {
      bars.push_back({time_class, Cause::time, {}, after - before});
      continue;
    }
    const std::string from = crossed_links(a.setting, a.plan, time_class);
    const std::string to = crossed_links(b.setting, b.plan, time_class);
    if (from == to || before == Seconds(0) || after == Seconds(0)) {
      bars.push_back({time_class, Cause::time, before == Seconds(0) ? to : from, after - before});
    } else {
      bars.push_back({time_class, Cause::time, from, -1 * before});
      bars.push_back({time_class, Cause::time, to, after});
    }
  }
  std::erase_if(bars, [](const Bar& bar) { return bar.difference == Seconds(0); });
  return bars;
}

std::vector<LighterRecompute> lighter_recompute(const Setting& setting, const ParallelPlan& plan) {
  std::vector<LighterRecompute> lighter;
  if (setting.workload.phase != Phase::training) return lighter;
  Simulator simulator(setting, {.time_infeasible = true});
  for (const Recompute recompute : enum_values<Recompute>()) {
    if (recompute >= plan.recompute) break;
    ParallelPlan other = plan;
    other.recompute = recompute;
    lighter.push_back({recompute, simulator.run(other)});
  }
  return lighter;
}

}  // namespace shardscape::compare
