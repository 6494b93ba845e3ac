#include "sweep/search/executed_steps.h"

#include <algorithm>

#include "engine/spec/zero.h"

namespace shardscape::sweep {

ParallelPlan executed_plan(ParallelPlan plan, const StackProfile& stack) {
  const bool both_shard = zero_shards(plan, ZeroState::optimizer) && !zero_shards(plan, ZeroState::weights);
  if (both_shard && !scatters_each_microbatch(plan, stack)) plan.zero_stage = 1;
  return plan;
}

ExecutedSteps::Entry& ExecutedSteps::entry(std::size_t group, const ParallelPlan& plan) {
  const std::lock_guard lock(mutex_);
  std::vector<std::unique_ptr<Entry>>& of_group = known_[group];
  const auto known = std::ranges::find_if(of_group, [&](const auto& one) { return one->plan == plan; });
  if (known != of_group.end()) return **known;
  of_group.push_back(std::make_unique<Entry>());
  of_group.back()->plan = plan;
  return *of_group.back();
}

Prediction ExecutedSteps::of(std::size_t group, const ParallelPlan& plan,
                             const std::function<Prediction()>& execute) {
  Entry& one = entry(group, plan);
  std::call_once(one.once, [&] { one.prediction = execute(); });
  return one.prediction;
}

Prediction ExecutedSteps::with_times(Prediction own, const Prediction& executed) {
  own.status = executed.status;  // ranks that wait for each other
  own.reason = executed.reason;
  own.step_time = executed.step_time;
  own.breakdown = executed.breakdown;
  own.tokens_per_s_per_gpu = executed.tokens_per_s_per_gpu;
  own.mfu = executed.mfu;
  own.contended_share = executed.contended_share;
  return own;
}

}  // namespace shardscape::sweep
