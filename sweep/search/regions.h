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

#include <cstdint>
#include <vector>

#include "engine/spec/plan.h"
#include "sweep/space/design_space.h"

namespace shardscape::sweep {

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

/// A combination of the axes that are free in every listed entry, in the order of ids.
struct FreeChoice {
  Recompute recompute = Recompute::none;
  std::int32_t microbatch = 1;
};

/// A plan of a family with given values of these axes.
inline ParallelPlan with_choice(ParallelPlan plan, const FreeChoice& choice) {
  plan.recompute = choice.recompute;
  plan.microbatch = choice.microbatch;
  return plan;
}

/// The regions of one setting; those of all settings are alike. Immutable.
class Regions {
 public:
  /// `space`: a space of training plans.
  explicit Regions(const DesignSpace& space);

  [[nodiscard]] const std::vector<Family>& families() const { return families_; }
  [[nodiscard]] const std::vector<FreeChoice>& choices() const { return choices_; }
  [[nodiscard]] const std::vector<std::int32_t>& microbatches() const { return microbatches_; }
  /// For each microbatch the choices that have it, ascending.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& choices_with() const { return choices_with_; }
  /// Number of families with each microbatch; their index is family * microbatches + microbatch.
  [[nodiscard]] std::size_t cells() const { return families_.size() * microbatches_.size(); }
  [[nodiscard]] std::size_t keys() const { return keys_; }
  [[nodiscard]] Recompute least_recompute() const { return least_recompute_; }
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
  std::vector<std::int32_t> microbatches_;  ///< distinct values
  std::vector<std::vector<std::uint32_t>> choices_with_;
  std::size_t keys_ = 0;
  Recompute least_recompute_ = Recompute::full;
};

}  // namespace shardscape::sweep
