// The regions of a design space that search cuts off whole.
//
//   setting   hardware and workload                              | the time of the fastest family in it
//   family    degrees, sequence parallelism, experts, microbatch | floors of its layers (engine/plan_floor.h)
//   variant   and schedule, virtual stages, ZeRO, recomputation  | the same, and memory and constraints exactly
//   point     and rank order
//
// Of a family's plans the layers cost the same (an axis of plans that is not named here is one of families); of a
// variant's the memory is the same, and what constraints can name. (Where the order of ranks decides whether passes run
// in pairs, PlanFloor::order_decides_pairs(), memory is that of a point, and of a variant the least.)
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/spec/plan_axes.h"
#include "sweep/space/design_space.h"

namespace shardscape::sweep {

/// The axes that tell the variants of a family apart: the floors of its layers are the same for all of their values.
inline constexpr std::array kVariantAxes = {PlanKey::schedule, PlanKey::virtual_stages, PlanKey::zero_stage};
/// Whether an axis that is no degree tells families apart.
constexpr bool is_of_families(const PlanAxisRow& row) {
  return is_setting(row) && !is_free(row) && applies(row.phases, Phase::training) &&
         std::ranges::find(kVariantAxes, row.key) == kVariantAxes.end();
}

/// Entries of the list of plans that differ only in rank order.
struct Variant {
  ParallelPlan plan;  ///< the first of them, with free axes at their idle value
  std::vector<std::uint64_t> listed;
  std::vector<std::size_t> orders;  ///< for each entry the number of its order in Family::orders
};

/// Training plans with equal degrees whose layers have one LayerKey, except for the microbatch.
struct Family {
  ParallelPlan plan;    ///< one of them, with free axes at their idle value
  std::size_t key = 0;  ///< families with equal keys differ only in pipeline and data parallelism
  std::vector<RankOrder> orders;
  /// For each order a number; orders with equal numbers, counted from 0 as they appear, have layers that call equal
  /// groups.
  std::vector<std::size_t> calls;
  std::vector<Variant> variants;  ///< in the order of the space
  /// For each schedule with its virtual stages, the index of the variant with the least ZeRO stage.
  std::vector<std::size_t> schedules;
  std::uint64_t listed = 0;  ///< number of entries
};

/// The axes of training plans that are free in every listed entry.
constexpr bool is_of_choices(const PlanAxisRow& row) {
  return is_free(row) && applies(row.phases, Phase::training);
}
/// A combination of their codes, in the order of the table.
using FreeChoice =
    std::array<std::int32_t, static_cast<std::size_t>(std::ranges::count_if(kPlanRows, is_of_choices))>;

/// A plan of a family with given values of these axes, and their values in a plan.
inline ParallelPlan with_choice(ParallelPlan plan, const FreeChoice& choice) {
  const std::int32_t* code = choice.data();
  for (const PlanAxisRow& row : kPlanRows)
    if (is_of_choices(row)) row.set(plan, *code++);
  return plan;
}
inline FreeChoice choice_of(const ParallelPlan& plan) {
  FreeChoice choice;
  std::int32_t* code = choice.data();
  for (const PlanAxisRow& row : kPlanRows)
    if (is_of_choices(row)) *code++ = row.get(plan);
  return choice;
}

/// The regions of one setting; those of all settings are alike. Immutable.
class Regions {
 public:
  /// `space`: a space of training plans.
  explicit Regions(const DesignSpace& space);

  [[nodiscard]] const std::vector<Family>& families() const { return families_; }
  [[nodiscard]] const std::vector<FreeChoice>& choices() const { return choices_; }
  /// The choices that differ in more than recomputation, each with the least of the space: what less of it costs bounds
  /// what more does.
  [[nodiscard]] const std::vector<FreeChoice>& least_choices() const { return least_choices_; }
  /// For each of these the choices that have its other values, ascending.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& choices_with() const { return choices_with_; }
  /// Number of families with each of these; their index is family * least choices + least choice.
  [[nodiscard]] std::size_t cells() const { return families_.size() * least_choices_.size(); }
  [[nodiscard]] std::size_t keys() const { return keys_; }
  /// The plan of an entry of a family's variant (an index in Variant::listed) with a free choice.
  [[nodiscard]] ParallelPlan plan(const Family& family, const Variant& variant, std::size_t entry,
                                  std::size_t choice) const {
    ParallelPlan plan = with_choice(variant.plan, choices_[choice]);
    plan.order = family.orders[variant.orders[entry]];
    return plan;
  }
  /// The id of a listed entry with a free choice.
  [[nodiscard]] std::uint64_t id(std::uint64_t setting, std::uint64_t listed, std::size_t choice) const {
    return setting * plans_ + listed * choices_.size() + choice;
  }

 private:
  std::uint64_t plans_ = 0;
  std::vector<Family> families_;
  std::vector<FreeChoice> choices_;
  std::vector<FreeChoice> least_choices_;
  std::vector<std::vector<std::uint32_t>> choices_with_;
  std::size_t keys_ = 0;
};

}  // namespace shardscape::sweep
