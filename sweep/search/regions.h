// The regions of a design space that search cuts off whole.
//
//   setting   hardware and workload                              | the time of the fastest family in it
//   family    degrees, sequence parallelism, experts, microbatch | floors of its layers (engine/plan_floor.h)
//   variant   and schedule, virtual stages, ZeRO, recomputation  | the same, and memory and constraints exactly
//   point     and rank order
//
// Of a family's plans the layers cost the same; of a variant's the memory is the same, and what constraints can name.
// (Where the order of ranks decides whether passes run in pairs, PlanFloor::order_decides_pairs(), memory is that of a
// point, and of a variant the least.)
#pragma once

#include <cstdint>
#include <vector>

#include "engine/spec/plan.h"
#include "sweep/space/design_space.h"

namespace shardscape::sweep {

/// Listed entries that differ in their rank order only.
struct Variant {
  ParallelPlan plan;  ///< the first of them; free axes idle
  std::vector<std::uint64_t> listed;
  std::vector<std::size_t> orders;  ///< of each, its number among the orders of the family
};

/// Training plans whose layers have one LayerKey, but for the microbatch, on the same degrees.
struct Family {
  ParallelPlan plan;    ///< one of them; free axes idle
  std::size_t key = 0;  ///< families of one number differ in pipeline and data parallelism only
  std::vector<RankOrder> orders;
  /// By order: orders of one number, counted from 0 as they appear, have layers that call the same groups.
  std::vector<std::size_t> calls;
  std::vector<Variant> variants;  ///< in the order of the space
  /// Of each schedule with its virtual stages the variant of the least ZeRO stage.
  std::vector<std::size_t> schedules;
  std::uint64_t listed = 0;  ///< entries
};

/// A combination of the axes that any listed entry takes any code of, in the order of ids.
struct FreeChoice {
  Recompute recompute = Recompute::none;
  std::int32_t microbatch = 1;
};

/// Of one setting; all settings are cut alike. Immutable.
class Regions {
 public:
  /// `space`: of training.
  explicit Regions(const DesignSpace& space);

  [[nodiscard]] const std::vector<Family>& families() const { return families_; }
  [[nodiscard]] const std::vector<FreeChoice>& choices() const { return choices_; }
  [[nodiscard]] const std::vector<std::int32_t>& microbatches() const { return microbatches_; }
  /// By microbatch the choices with it, ascending.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& choices_with() const { return choices_with_; }
  /// Families, each with every microbatch: [family * microbatches + microbatch].
  [[nodiscard]] std::size_t cells() const { return families_.size() * microbatches_.size(); }
  [[nodiscard]] std::size_t keys() const { return keys_; }
  [[nodiscard]] Recompute least_recompute() const { return least_recompute_; }
  /// The id of a listed entry with a free choice.
  [[nodiscard]] std::uint64_t id(std::uint64_t setting, std::uint64_t listed, std::size_t choice) const {
    return setting * plans_ + listed * choices_.size() + choice;
  }

 private:
  std::uint64_t plans_ = 0;
  std::vector<Family> families_;
  std::vector<FreeChoice> choices_;
  std::vector<std::int32_t> microbatches_;  ///< distinct
  std::vector<std::vector<std::uint32_t>> choices_with_;
  std::size_t keys_ = 0;
  Recompute least_recompute_ = Recompute::full;
};

}  // namespace shardscape::sweep
