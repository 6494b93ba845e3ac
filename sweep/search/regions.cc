#include "sweep/search/regions.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/model/layer_key.h"
#include "engine/plan_floor.h"

namespace shardscape::sweep {

namespace {

using Key = std::array<std::int32_t, 6>;
using FamilyKey = std::array<std::int32_t, 8>;

Key layers_of(const ParallelPlan& plan) {
  return {plan.tensor,
          plan.context,
          plan.expert,
          plan.expert_tensor,
          static_cast<std::int32_t>(plan.sequence_parallel),
          static_cast<std::int32_t>(model::layer_key(plan, 1).dispatches)};
}

FamilyKey family_of(const ParallelPlan& plan) {
  const Key key = layers_of(plan);
  return {key[0], key[1], key[2], key[3], key[4], key[5], plan.pipeline, plan.data};
}

bool same_schedule(const ParallelPlan& a, const ParallelPlan& b) {
  return a.schedule == b.schedule && a.virtual_stages == b.virtual_stages;
}

/// The number of the order in the family, perhaps a new one.
std::size_t order_of(Family& family, const RankOrder& order) {
  const auto known = std::ranges::find(family.orders, order);
  const auto number = static_cast<std::size_t>(known - family.orders.begin());
  if (known != family.orders.end()) return number;
  std::size_t calls = 0;
  for (std::size_t other = 0; other < number; ++other) {
    if (same_layer_groups(family.plan, family.orders[other], order)) {
      calls = family.calls[other];
      break;
    }
    calls = std::max(calls, family.calls[other] + 1);
  }
  family.orders.push_back(order);
  family.calls.push_back(calls);
  return number;
}

}  // namespace

Regions::Regions(const DesignSpace& space) : plans_(space.plans()) {
  if (plans_ == 0) return;
  const std::uint64_t free = space.free_choices();
  for (std::uint64_t choice = 0; choice < free; ++choice) {
    const ParallelPlan plan = space.point(choice).plan;
    choices_.push_back({plan.recompute, plan.microbatch});
    least_recompute_ = std::min(least_recompute_, plan.recompute);
    if (std::ranges::find(microbatches_, plan.microbatch) == microbatches_.end())
      microbatches_.push_back(plan.microbatch);
  }
  std::map<FamilyKey, std::size_t> families;
  std::map<Key, std::size_t> keys;
  for (std::uint64_t listed = 0; listed < plans_ / free; ++listed) {
    ParallelPlan plan = space.point(listed * free).plan;
    plan.recompute = Recompute::none;
    plan.microbatch = 1;
    const auto family = families.try_emplace(family_of(plan), families_.size());
    if (family.second) {
      const std::size_t key = keys.try_emplace(layers_of(plan), keys.size()).first->second;
      families_.push_back({plan, key, {}, {}, {}, {}, 0});
    }
    Family& of = families_[family.first->second];
    ++of.listed;
    const std::size_t order = order_of(of, plan.order);
    const auto same = [&](const Variant& variant) {
      return same_schedule(variant.plan, plan) && variant.plan.zero_stage == plan.zero_stage;
    };
    auto variant = std::ranges::find_if(of.variants, same);
    if (variant == of.variants.end()) variant = of.variants.insert(variant, {plan, {}, {}});
    variant->listed.push_back(listed);
    variant->orders.push_back(order);
  }
  keys_ = keys.size();
  for (Family& family : families_) {
    for (std::size_t v = 0; v < family.variants.size(); ++v) {
      const ParallelPlan& plan = family.variants[v].plan;
      const auto known = std::ranges::find_if(family.schedules, [&](std::size_t other) {
        return same_schedule(family.variants[other].plan, plan);
      });
      if (known == family.schedules.end()) {
        family.schedules.push_back(v);
      } else if (plan.zero_stage < family.variants[*known].plan.zero_stage) {
        *known = v;
      }
    }
  }
}

}  // namespace shardscape::sweep
