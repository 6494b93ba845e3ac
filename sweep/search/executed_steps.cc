#include "sweep/search/executed_steps.h"

#include <algorithm>

#include "engine/base/hash.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/zero.h"

namespace shardscape::sweep {

ParallelPlan executed_plan(ParallelPlan plan, const StackProfile& stack) {
  const bool both_shard = zero_shards(plan, ZeroState::optimizer) && !zero_shards(plan, ZeroState::weights);
  if (both_shard && !scatters_each_microbatch(plan, stack)) plan.zero_stage = 1;
  return plan;
}

ExecutedSteps::Entry& ExecutedSteps::entry(std::size_t group, const ParallelPlan& plan) {
  const std::lock_guard lock(mutex_);
  std::uint64_t hash = group;
  for (const PlanAxisRow& row : kPlanRows) hash = hash_word(hash, static_cast<std::uint64_t>(row.get(plan)));
  std::vector<std::unique_ptr<Entry>>& alike = known_[hash];
  const auto known =
      std::ranges::find_if(alike, [&](const auto& one) { return one->group == group && one->plan == plan; });
  if (known != alike.end()) return **known;
  alike.push_back(std::make_unique<Entry>());
  alike.back()->group = group;
  alike.back()->plan = plan;
  return *alike.back();
}

std::optional<Prediction> ExecutedSteps::of(std::size_t group, const ParallelPlan& plan,
                                            const StepWatch& watch,
                                            const std::function<Prediction(const StepWatch&)>& execute) {
  Entry& one = entry(group, plan);
  const std::lock_guard lock(one.executing);
  if (one.whole) return one.prediction;
  if (!watch(one.at_least)) return std::nullopt;
  bool given_up = false;
  const Prediction prediction = execute([&](Seconds at_least) {
    one.at_least = std::max(one.at_least, at_least);
    given_up = given_up || !watch(at_least);
    return !given_up;
  });
  if (given_up) return std::nullopt;
  one.whole = true;
  return one.prediction = prediction;
}

Prediction ExecutedSteps::with_times(Prediction own, const Prediction& executed) {
  own.status = executed.status;  // an execution may find that ranks wait for each other
  own.reason = executed.reason;
  static_cast<StepPrediction&>(own) = executed;
  own.joules_per_token = executed.joules_per_token;
  own.cost_per_million_tokens = executed.cost_per_million_tokens;
  return own;
}

}  // namespace shardscape::sweep
