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

constexpr std::size_t kDispatch = 5;
static_assert(kDispatch < std::tuple_size_v<Key>);
/// Whether plans of two families may differ in rank order alone; the entries of such families are listed in turn.
bool same_but_for_dispatch(FamilyKey a, FamilyKey b) {
  a[kDispatch] = b[kDispatch] = 0;
  return a == b;
}

using VariantKey = std::array<std::int64_t, 4>;
VariantKey variant_of(std::size_t family, const ParallelPlan& plan, std::int32_t zero_stage) {
  return {static_cast<std::int64_t>(family), static_cast<std::int64_t>(plan.schedule), plan.virtual_stages,
          zero_stage};
}

/// The number of the order in the family, where it is added if it is new.
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
    const auto known = std::ranges::find(microbatches_, plan.microbatch);
    const auto number = static_cast<std::size_t>(known - microbatches_.begin());
    if (known == microbatches_.end()) {
      microbatches_.push_back(plan.microbatch);
      choices_with_.emplace_back();
    }
    choices_with_[number].push_back(static_cast<std::uint32_t>(choice));
  }
  std::map<FamilyKey, std::size_t> families;
  std::map<Key, std::size_t> keys;
  // Rank orders vary fastest in the list, so that an entry mostly has the family and the variant of the one before.
  std::map<VariantKey, std::size_t>
      variants;  // variants of the current family, and of those that are listed in turn with it
  FamilyKey at_hand{};
  VariantKey last{};
  std::size_t family_at = 0, variant_at = 0;
  for (std::uint64_t listed = 0; listed < plans_ / free; ++listed) {
    ParallelPlan plan = space.point(listed * free).plan;
    plan.recompute = Recompute::none;
    plan.microbatch = 1;
    if (const FamilyKey key = family_of(plan); listed == 0 || key != at_hand) {
      if (!same_but_for_dispatch(key, at_hand)) variants.clear();
      at_hand = key;
      const auto known = families.try_emplace(key, families_.size());
      family_at = known.first->second;
      if (known.second) {
        const std::size_t layers = keys.try_emplace(layers_of(plan), keys.size()).first->second;
        families_.push_back({plan, layers, {}, {}, {}, {}, 0});
      }
    }
    Family& of = families_[family_at];
    ++of.listed;
    const std::size_t order = order_of(of, plan.order);
    if (const VariantKey key = variant_of(family_at, plan, plan.zero_stage); listed == 0 || key != last) {
      last = key;
      const auto known = variants.try_emplace(key, of.variants.size());
      variant_at = known.first->second;
      if (known.second) of.variants.push_back({plan, {}, {}});
    }
    of.variants[variant_at].listed.push_back(listed);
    of.variants[variant_at].orders.push_back(order);
  }
  keys_ = keys.size();
  for (std::size_t f = 0; f < families_.size(); ++f) {
    Family& family = families_[f];
    std::map<VariantKey, std::size_t> known;  // index of each schedule in `schedules`
    for (std::size_t v = 0; v < family.variants.size(); ++v) {
      const ParallelPlan& plan = family.variants[v].plan;
      const auto schedule = known.try_emplace(variant_of(f, plan, 0), family.schedules.size());
      if (schedule.second) {
        family.schedules.push_back(v);
      } else if (std::size_t& least = family.schedules[schedule.first->second];
                 plan.zero_stage < family.variants[least].plan.zero_stage) {
        least = v;
      }
    }
  }
}

}  // namespace shardscape::sweep
