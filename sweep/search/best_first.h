// Search: the best points of a design space without visiting most of them.
//
// Branch and bound over the regions of regions.h. Settings are taken up in the order of their floors, sharpened with the
// calls of layers when their turn comes; inside one the region with the least floor is opened next: a family gets a
// sharper floor (with the calls of its layers), then falls into variants, a variant into points, each of which has a
// floor of its own order of ranks and is visited: evaluated as a sweep evaluates it. A region is cut off
//
//   bound       where its floor lies beyond the worst point of the answer so far: no point in it can enter the answer.
//               A point that is executed is cut off as soon as its clock, with the work that some rank has left, does
//   memory      where the device is too small for its plans, exactly as the evaluator says it
//   constraint  where a constraint of the study fails; none can name a rank order
//   rule        where its plans are indivisible, unsupported or out of range
//
// By expected_step_time_s points are visited as a race (fault_race.h): floors of the healthy step hold for the
// expected one, and a point waits with a bound of its own until all of its samples are drawn or the bound cuts it
// off. Visited are those with all of their samples.
//
// So the answer is that of a sweep: what is cut by a bound is beyond all of it. Floors are taken a billionth lower than
// computed, for sums that are rounded in another order; regions whose floor ties with the worst point are opened, so
// that ties go by point id as in a sweep.
//
// Settings, or parts of them where there are few, are searched in rounds: those of one round side by side, each from
// what is known when the round begins, by whichever thread or rank is free; what they find is put together in their
// order. Rounds grow, as the first ones find most of what cuts off the others. How many parts a round has depends on
// the study alone, so the answer, its certificate and what is visited are the same for any number of threads and ranks,
// unless the search is stopped.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results_schema/search_info.h"
#include "results_schema/summary.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/block_worker.h"

namespace shardscape::sweep {

struct SearchGoal {
  std::uint64_t count = results::kTopCount;  ///< best points by the first objective; of a front all of them
  bool front = false;                        ///< the points that no other beats in all objectives
  std::vector<std::string> objectives;       ///< columns
  double within = 0;  ///< the answer may be so much worse than the best, relative; >= 0
};

/// Why no floors are known for a goal, as a clause; empty where they are: training in hierarchical mode, by
/// step_time_s, expected_step_time_s, tokens_per_s_per_gpu or mfu, for a front beside memory_peak_bytes, too.
std::string why_unbounded(const SweepJob& job, const SearchGoal& goal);

/// Of one setting: families of degrees, and families with each microbatch, of some kilobytes and some hundred bytes each
/// while they are searched.
inline constexpr std::uint64_t kMostFamilies = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kMostCells = std::uint64_t{1} << 23U;
/// And floors of the latter in all settings that have floors of their own, of eight bytes each.
inline constexpr std::uint64_t kMostFloors = std::uint64_t{1} << 27U;

/// Why the regions of a study would take too much memory, as a clause about its `space`; empty where they don't.
std::string why_too_many_regions(const SweepJob& job);

struct SearchProgress {
  std::uint64_t points = 0;        ///< of the study
  results::FateCounts counts{};    ///< on rank 0 those of other ranks, too, up to the round before
  std::uint64_t visited_here = 0;  ///< by this process
  double bound = 0;  ///< what the rest of a setting at hand can reach at best, in the first objective
  std::optional<BestPoint> best;
};

struct SearchOptions {
  EvaluatorFactory evaluator = simulator_factory();
  /// Of executed steps the hierarchical search that says which points to execute first.
  EvaluatorFactory hints = simulator_factory();
  /// Called before each region is opened and every few milliseconds of an execution, never twice at once; the search
  /// stops where it says false. May be empty.
  std::function<bool(const SearchProgress&)> go_on;
  /// Called likewise in the search for hints, beside `go_on`: where it says false the best so far are executed. May be empty.
  std::function<bool()> seek_hints;
  int threads = 1;  ///< of this process
  ranks::Ranks* together =
      nullptr;  ///< that search together, every one of them by this call; null: this one alone
};

/// Points that a search of executed steps executes before any other, at most.
inline constexpr std::uint64_t kMostHints = 64;

/// Of a race under faults.
struct RaceDraws {
  std::uint64_t made = 0;    ///< samples drawn, of all points together
  std::uint64_t points = 0;  ///< of which any were
};

/// Predictions that are kept, of some 400 bytes each: of more visited points none.
inline constexpr std::size_t kMostKeptPredictions = 1 << 18;

/// Of rank 0; elsewhere it is empty.
struct SearchOutcome {
  std::vector<std::uint64_t> visited;   ///< ids, ascending
  std::vector<Prediction> predictions;  ///< of each; empty where there are too many
  std::vector<BestPoint> best;          ///< the answer by its first objective, best first
  results::SearchInfo info;
  std::optional<RaceDraws> draws;  ///< by expected_step_time_s
  std::uint64_t given_up = 0;      ///< executions that were ended as they take longer than the answer
  std::uint64_t too_large = 0;     ///< plans that the evaluator did not execute to their end: they are open
};

/// `job`: a whole study, for which why_unbounded(job, goal) is empty.
/// RankLost on rank 0.
SearchOutcome search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options);

}  // namespace shardscape::sweep
