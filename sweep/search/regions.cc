#include "sweep/search/regions.h"

#include <map>
#include <utility>

#include "engine/model/layer_key.h"
#include "engine/plan_floor.h"

namespace shardscape::sweep {

namespace {

/// What distinguishes plans: the codes of their axes without the free ones and the order, each in its row's place, and
/// behind them whether they send tokens to the ranks of experts, which the order decides.
using Key = std::array<std::int32_t, kPlanRows.size() + 1>;
constexpr std::size_t kDispatch = kPlanRows.size();

Key family_of(const ParallelPlan& plan) {
  Key key{};
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind == AxisKind::degree || is_of_families(row))
      key[static_cast<std::size_t>(row.key)] = row.get(plan);
  }
  key[kDispatch] = model::layer_key(plan, 1).dispatches ? 1 : 0;
  return key;
}
/// The same but for the axes that the layers of a family do not depend on.
Key layers_of(Key family) {
  for (const PlanKey key : {PlanKey::pipeline, PlanKey::data}) family[static_cast<std::size_t>(key)] = 0;
  return family;
}
/// Whether plans of two families may differ in rank order alone; the entries of such families are listed in turn.
bool same_but_for_dispatch(Key a, const Key& b) {
  a[kDispatch] = b[kDispatch];
  return a == b;
}

/// The family, and the codes of kVariantAxes.
using VariantKey = std::array<std::int64_t, 1 + kVariantAxes.size()>;
VariantKey variant_of(std::size_t family, const ParallelPlan& plan) {
  VariantKey key = {static_cast<std::int64_t>(family)};
  for (std::size_t i = 0; i < kVariantAxes.size(); ++i) key[1 + i] = row_of(kVariantAxes[i]).get(plan);
  return key;
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
  Recompute least_recompute = Recompute::full;
  for (std::uint64_t choice = 0; choice < free; ++choice) {
    ParallelPlan plan = space.point(choice).plan;
    choices_.push_back(choice_of(plan));
    least_recompute = std::min(least_recompute, plan.recompute);
    plan.recompute = Recompute::none;
    const auto known = std::ranges::find(least_choices_, choice_of(plan));
    const auto number = static_cast<std::size_t>(known - least_choices_.begin());
    if (known == least_choices_.end()) {
      least_choices_.push_back(choice_of(plan));
      choices_with_.emplace_back();
    }
    choices_with_[number].push_back(static_cast<std::uint32_t>(choice));
  }
  for (FreeChoice& choice : least_choices_) {
    ParallelPlan plan = with_choice({}, choice);
    plan.recompute = least_recompute;
    choice = choice_of(plan);
  }
  std::map<Key, std::size_t> families, keys;
  // Rank orders vary fastest in the list, so that an entry mostly has the family and the variant of the one before.
  std::map<VariantKey, std::size_t>
      variants;  // variants of the current family, and of those that are listed in turn with it
  Key at_hand{};
  VariantKey last{};
  std::size_t family_at = 0, variant_at = 0;
  for (std::uint64_t listed = 0; listed < plans_ / free; ++listed) {
    const ParallelPlan plan = with_choice(space.point(listed * free).plan, choice_of({}));
    if (const Key key = family_of(plan); listed == 0 || key != at_hand) {
      if (!same_but_for_dispatch(key, at_hand)) variants.clear();
      at_hand = key;
      const auto known = families.try_emplace(key, families_.size());
      family_at = known.first->second;
      if (known.second) {
        const std::size_t layers = keys.try_emplace(layers_of(key), keys.size()).first->second;
        families_.push_back({plan, layers, {}, {}, {}, {}, 0});
      }
    }
    Family& of = families_[family_at];
    ++of.listed;
    const std::size_t order = order_of(of, plan.order);
    if (const VariantKey key = variant_of(family_at, plan); listed == 0 || key != last) {
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
      ParallelPlan plan = family.variants[v].plan;
      const std::int32_t zero_stage = std::exchange(plan.zero_stage, 0);
      const auto schedule = known.try_emplace(variant_of(f, plan), family.schedules.size());
      if (schedule.second) {
        family.schedules.push_back(v);
      } else if (std::size_t& least = family.schedules[schedule.first->second];
                 zero_stage < family.variants[least].plan.zero_stage) {
        least = v;
      }
    }
  }
}

}  // namespace shardscape::sweep
