// Groups of ranks as lattices: how the axes of a plan lie on the rank numbers.
//
// With a rank order, rank = sum over axes of coordinate * stride. The ranks that differ in some axes only
// form a group; all groups of that kind (siblings) tile the machine and communicate at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/enum_array.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/plan.h"

namespace shardscape::network {

/// Members: sum over levels of i * stride, 0 <= i < extent, level 0 fastest. Levels of extent 1 are not kept. With a
/// mirror (an axis of even extent that no level lies along) behind them those at the other end of that axis, where they
/// have the coordinate extent - 1 - c instead of c.
struct RankGroup {
  struct Level {
    std::int32_t extent = 1;
    std::int32_t stride = 0;
    friend auto operator<=>(const Level&, const Level&) = default;
  };
  std::array<Level, kPlanAxes> levels{};
  std::int32_t depth = 0;
  Level mirror;  ///< extent 1: none

  [[nodiscard]] bool alone() const { return depth == 0 && mirror.extent == 1; }
  /// The member of the mirrored half that corresponds to `rank`; without a mirror, the rank itself.
  [[nodiscard]] std::int32_t mirrored(std::int32_t rank) const {
    if (mirror.extent == 1) return rank;
    const std::int32_t coordinate = rank / mirror.stride % mirror.extent;
    return rank + (mirror.extent - 1 - 2 * coordinate) * mirror.stride;
  }
  [[nodiscard]] std::int32_t size() const {
    std::int32_t product = mirror.extent == 1 ? 1 : 2;
    for (std::int32_t i = 0; i < depth; ++i) product *= levels[static_cast<std::size_t>(i)].extent;
    return product;
  }
  /// Whether every group of the other kind lies within one group of this kind, as far as single levels of it tell.
  [[nodiscard]] bool holds(const RankGroup& other) const {
    const auto in = [](const Level& inner, const Level& outer) {
      return inner.stride % outer.stride == 0 &&
             outer.extent * outer.stride % (inner.extent * inner.stride) == 0;
    };
    const auto mine = std::span(levels).first(static_cast<std::size_t>(depth)),
               theirs = std::span(other.levels).first(static_cast<std::size_t>(other.depth));
    return other.mirror.extent == 1 && std::ranges::all_of(theirs, [&](const Level& inner) {
             return std::ranges::any_of(mine, [&](const Level& outer) { return in(inner, outer); });
           });
  }
  /// Adds a level outside of the others; merges it with the last level if it continues that one.
  void push(std::int32_t extent, std::int32_t stride) {
    if (extent == 1) return;
    if (depth > 0) {
      Level& last = levels[static_cast<std::size_t>(depth - 1)];
      if (last.stride * last.extent == stride) {
        last.extent *= extent;
        return;
      }
    }
    levels[static_cast<std::size_t>(depth++)] = {extent, stride};
  }
  friend auto operator<=>(const RankGroup&, const RankGroup&) = default;
};

/// The groups of one plan, by kind.
using RankGroups = EnumArray<ParallelGroup, RankGroup>;

/// The strides of a plan's axes under its rank order.
class PlanLayout {
 public:
  explicit PlanLayout(const ParallelPlan& plan) : plan_(plan) {
    std::int32_t stride = 1;
    for (const PlanAxis axis : plan.order) {
      strides_[axis] = stride;
      stride *= plan.degree(axis);
    }
  }
  [[nodiscard]] std::int32_t stride(PlanAxis axis) const { return strides_[axis]; }

  /// The group that spans the given axes.
  template <class... Axes>
  [[nodiscard]] RankGroup group(Axes... axes) const {
    RankGroup result;
    for (const PlanAxis axis : plan_.order) {
      if (((axis == axes) || ...)) result.push(plan_.degree(axis), stride(axis));
    }
    return result;
  }
  /// The group of a kind. Where every part of the model lies on two stages, twice as many ranks hold copies of the same
  /// parameters.
  [[nodiscard]] RankGroup group(ParallelGroup kind) const {
    RankGroup result;
    if (is_of_experts(kind) && plan_.folds_experts()) {
      result = folded(folded_group(plan_, kind));
    } else {
      for (const PlanAxis axis : plan_.order) {
        if (spans(unfolded(kind), axis)) result.push(plan_.degree(axis), stride(axis));
      }
    }
    if (plan_.both_ways() && std::ranges::find(kCopyGroups, kind) != kCopyGroups.end())
      result.mirror = {plan_.pipeline, stride(PlanAxis::pipeline)};
    return result;
  }
  /// The axis whose slices are the pipeline stages; nothing where there is one stage.
  [[nodiscard]] std::optional<RankGroup::Level> stages() const {
    if (plan_.pipeline == 1) return std::nullopt;
    return RankGroup::Level{plan_.pipeline, stride(PlanAxis::pipeline)};
  }
  [[nodiscard]] RankGroups groups() const {
    RankGroups groups;
    for (const ParallelGroup kind : enum_values<ParallelGroup>()) groups[kind] = group(kind);
    return groups;
  }

 private:
  /// The group that a fold describes. Ranks of a stage form rows of `inside` ranks each, as far apart as the pipeline
  /// axis puts them.
  [[nodiscard]] RankGroup folded(const FoldedGroup& fold) const {
    const std::int64_t inside = ranks_inside_pipeline(plan_), end = fold.stride * fold.extent;
    const std::int64_t row = inside * plan_.pipeline;
    const auto rank = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    RankGroup result;
    if (end <= inside) {
      result.push(rank(fold.extent), rank(fold.stride));
    } else if (fold.stride >= inside) {
      result.push(rank(fold.extent), rank(fold.stride / inside * row));
    } else {
      result.push(rank(inside / fold.stride), rank(fold.stride));
      result.push(rank(end / inside), rank(row));
    }
    return result;
  }

  const ParallelPlan& plan_;
  EnumArray<PlanAxis, std::int32_t> strides_{};
};

}  // namespace shardscape::network
