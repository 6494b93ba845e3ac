// The design space: point_id <-> plan, both ways, without storing the points.
//
//   point_id = (setting * listed + listed_index) * free + free_index
//
// The free axes are those whose values are all possible in every plan (is_free(): recomputation and microbatch), `free`
// is the number of their combinations, and free_index counts these in the order of the table of axes, the last one
// fastest.
//
// With several numbers of GPUs there is such a space for each, one behind the other; settings are those of all of them,
// as many for each number.
//
// `setting` is a combination of hardware and workload axes (slowest: neighbouring ids share a simulator's memo). A
// listed entry is one (tp, cp, pp, dp) whose product is the number of GPUs, with the axes that hang on it: sequence
// parallelism only where tp > 1, degrees of experts only where a stage has several ranks, ZeRO stage only where dp *
// cp > 1, schedule only where pp > 1, virtual stages only where the schedule is interleaved, and one rank order of
// each set that differs only in axes of degree 1 (the first the study lists). Thus each distinct plan has exactly one
// id, and ids do not depend on limits, shards or search order.
//
// A pool that prefills (inference) is the outermost loop: its GPUs, tensor and pipeline degree, and the GPUs with
// experts alone, wherever they make whole replicas; the other degrees then fill the GPUs that are left.
//
// Entries are listed by nested loops over tp, cp, pp, dp, sequence parallelism, degrees of experts, ZeRO stage,
// schedule, virtual stages, degrees of experts of the pool that prefills and rank order, outermost first, each in the
// order of the study; a degree that fills has no loop of its own but follows from the other three. Training-only axes
// (sequence parallelism, ZeRO, recompute, microbatch, schedule, virtual stages) are idle for inference: one value
// each.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/spec/phase.h"
#include "sweep/space/space_spec.h"

namespace shardscape::sweep {

struct PointIndex {
  std::uint64_t setting = 0;
  ParallelPlan plan;
};

/// The plan with every axis that has no effect at its idle value: sequence parallelism off without tensor parallelism,
/// ZeRO 0 without data or context parallelism, 1f1b without a pipeline or when interleaved with one chunk, one virtual
/// stage unless interleaved, and for inference every training-only axis. Experts that are split as the tensor group
/// splits all else (expert degree 1, expert tensor degree that of tensors) have both degrees 1. The rank order is not
/// changed.
ParallelPlan canonical(ParallelPlan plan, Phase phase);

/// Whether the two orders lay the plan's ranks out alike, as they differ only in axes of degree 1.
bool same_layout(const ParallelPlan& plan, const RankOrder& a, const RankOrder& b);

/// A design space. Immutable; all members may be called from any number of threads.
class DesignSpace {
 public:
  /// The most listed entries, some 90 bytes each; so many take seconds to list.
  static constexpr std::uint64_t kMostListedPlans = std::uint64_t{1} << 24U;
  /// The most listed entries of one (tp, cp, pp, dp), not counting rank orders.
  static constexpr std::uint64_t kMostSettings = std::uint64_t{1} << 20U;

  /// `gpus` >= 1, `settings` >= 1. The space is empty (plans() == 0) if no combination of degrees gives the number of
  /// GPUs, or if it has a problem().
  DesignSpace(const SpaceSpec& spec, std::int64_t gpus, Phase phase, std::uint64_t settings)
      : DesignSpace(spec, std::vector{gpus}, phase, settings) {}
  /// `settings`: of all numbers of GPUs together, as many for each.
  DesignSpace(const SpaceSpec& spec, const std::vector<std::int64_t>& gpus, Phase phase,
              std::uint64_t settings);

  /// Why there are too many entries to list, as a clause about the study's `space`; empty where all are listed.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::uint64_t size() const { return settings_ / ends_.size() * listed_.size() * free_; }
  /// Number of plans per setting; with several numbers of GPUs, of all of them.
  [[nodiscard]] std::uint64_t plans() const { return listed_.size() * free_; }
  /// The ids of the points on the number of GPUs with that index: [first, second).
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> points_on(std::size_t count) const {
    const std::uint64_t each = settings_ / ends_.size() * free_;
    return {(count == 0 ? 0 : ends_[count - 1]) * each, ends_[count] * each};
  }
  [[nodiscard]] std::uint64_t settings() const { return settings_; }
  [[nodiscard]] std::uint64_t free_choices() const { return free_; }  ///< number of ids of one listed entry
  /// Number of distinct (tp, cp, pp, dp) with pools.
  [[nodiscard]] std::uint64_t tuples() const { return tuples_; }
  /// The point with an id below size(). O(1).
  [[nodiscard]] PointIndex point(std::uint64_t id) const;
  /// The id of a plan in a setting; nothing where the plan is not in the space. Ignores axes without effect, and the
  /// places of degree-1 axes in the rank order. O(listed entries).
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t setting, const ParallelPlan& plan) const;

 private:
  /// An axis whose values are all possible in every entry.
  struct FreeAxis {
    const PlanAxisRow* row;
    std::vector<std::int32_t> codes;
  };
  void list_pools(const SpaceSpec& spec, std::int64_t gpus);
  void list_tuples(const SpaceSpec& spec, std::int64_t gpus, const PrefillPool& prefill, std::int32_t ffn);
  void list_degrees(const SpaceSpec& spec, std::size_t from, std::int64_t left, const PlanAxisRow* filling,
                    ParallelPlan& degrees);
  void list_plans(const SpaceSpec& spec, const ParallelPlan& degrees);

  /// Entries take memory, so that what may be too many of them is counted before any is kept.
  enum class Pass : std::uint8_t { bound, count, list };
  Pass pass_ = Pass::bound;
  std::uint64_t entries_ = 0;  ///< of this pass so far; of `bound` not less than there are
  Phase phase_;
  std::string problem_;
  std::deque<ParallelPlan> listed_;
  std::vector<std::uint64_t> ends_;  ///< for each number of GPUs, where its listed entries end
  std::vector<FreeAxis> free_axes_;  ///< outermost first
  std::uint64_t free_ = 1;           ///< number of combinations of their codes
  std::uint64_t tuples_ = 0;
  std::uint64_t settings_ = 1;
};

}  // namespace shardscape::sweep
