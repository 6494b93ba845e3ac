#include "engine/neighbours.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/simulate.h"

namespace shardscape {

namespace {

/// Reduces the degrees of experts to the largest that divide the plan's present number of ranks.
void refold_experts(ParallelPlan& plan) {
  const auto ranks = static_cast<std::int32_t>(plan.stage_ranks());
  plan.expert_tensor = std::gcd(plan.expert_tensor, ranks);
  plan.expert = std::gcd(plan.expert, ranks / plan.expert_tensor);
}

/// Appends plans that spread experts over twice or half as many ranks.
void append_expert_moves(const ParallelPlan& plan, std::vector<ParallelPlan>& out) {
  for (std::int32_t ParallelPlan::*degree : {&ParallelPlan::expert, &ParallelPlan::expert_tensor}) {
    out.push_back(plan);
    out.back().*degree *= 2;
    if (plan.*degree % 2 != 0) continue;
    out.push_back(plan);
    out.back().*degree /= 2;
  }
}

/// Appends plans with one degree doubled and another one halved.
void append_degrees(const ParallelPlan& plan, std::vector<ParallelPlan>& out) {
  constexpr std::array kAxes = {PlanAxis::tensor, PlanAxis::pipeline, PlanAxis::context, PlanAxis::data};
  static_assert(kAxes.size() == kPlanAxes, "an axis that no move changes");
  for (const PlanAxis more : {PlanAxis::tensor, PlanAxis::pipeline, PlanAxis::context}) {
    for (const PlanAxis less : kAxes) {
      if (more == less || plan.degree(less) % 2 != 0) continue;
      ParallelPlan next = plan;
      next.degree(more) *= 2;
      next.degree(less) /= 2;
      if (next.tensor == 1) next.sequence_parallel = false;
      if (next.data * next.context == 1) next.zero_stage = 0;
      if (next.pipeline == 1) next.virtual_stages = 1;
      refold_experts(next);
      out.push_back(next);
    }
  }
}

void append_training_moves(const ParallelPlan& plan, std::vector<ParallelPlan>& out) {
  const auto add = [&](auto change) {
    out.push_back(plan);
    change(out.back());
  };
  for (const Recompute policy : {Recompute::selective, Recompute::full}) {
    if (policy > plan.recompute) add([&](ParallelPlan& p) { p.recompute = policy; });
  }
  if (plan.microbatch % 2 == 0) add([](ParallelPlan& p) { p.microbatch /= 2; });
  for (std::int32_t stage = plan.zero_stage + 1; stage <= 3 && plan.data * plan.context > 1; ++stage) {
    add([&](ParallelPlan& p) { p.zero_stage = stage; });
  }
  if (plan.tensor > 1 && !plan.sequence_parallel) add([](ParallelPlan& p) { p.sequence_parallel = true; });
  if (plan.pipeline > 1 && plan.schedule != kPlainSchedule) {
    add([](ParallelPlan& p) {
      p.schedule = kPlainSchedule;
      p.virtual_stages = 1;
    });
  }
}

}  // namespace

std::vector<Neighbour> nearest_feasible(const Setting& setting, const ParallelPlan& plan, std::size_t wanted,
                                        std::int32_t most_moves) {
  const Phase phase = setting.workload.phase;
  Simulator simulator(setting);
  std::vector<ParallelPlan> seen = {plan};
  std::vector<Neighbour> found;
  std::size_t first = 0;  // index of the first plan that the last move reached
  for (std::int32_t moves = 1; moves <= most_moves && found.size() < wanted; ++moves) {
    const std::size_t last = seen.size(), before = found.size();
    for (; first < last; ++first) {
      std::vector<ParallelPlan> next;
      append_degrees(seen[first], next);
      if (setting.model.moe && seen[first].ffn == 0) append_expert_moves(seen[first], next);
      if (phase == Phase::training) append_training_moves(seen[first], next);
      for (const ParallelPlan& candidate : next) {
        if (std::ranges::find(seen, candidate) != seen.end()) continue;
        seen.push_back(candidate);
        const Prediction prediction = simulator.run(candidate);
        if (prediction.status == Status::ok) found.push_back({candidate, moves, prediction});
      }
    }
    std::stable_sort(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
                     [&](const Neighbour& a, const Neighbour& b) {
                       return a.prediction.whole(phase) < b.prediction.whole(phase);
                     });
  }
  if (found.size() > wanted) found.resize(wanted);
  return found;
}

}  // namespace shardscape
