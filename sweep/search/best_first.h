// Search: the best points of a design space without visiting most of them.
//
// Branch and bound over the regions of regions.h. Settings are taken up in the order of their floors, sharpened with
// the calls of layers when their turn comes; inside one the region with the least floor is opened next: a family gets a
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

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results_schema/rows/search_info.h"
#include "results_schema/rows/summary.h"
#include "sweep/ranks/ranks.h"
#include "sweep/runner/block_worker.h"

namespace shardscape::sweep {

struct SearchGoal {
  /// Number of best points by the first objective; for a front, of all points on it.
  std::uint64_t count = results::kTopCount;
  bool front = false;                   ///< the points that no other beats in all objectives
  std::vector<std::string> objectives;  ///< names of columns
  double within = 0;                    ///< how much worse than the best the answer may be, relative; >= 0
};

/// Why a goal has no floors, as a clause; empty where it has them: training by a TimeObjective (answer.h; in flattened
/// mode all but expected_step_time_s), also for a front beside memory_peak_bytes; simulated loads by latencies and rates
/// of requests (served_search.h).
std::string why_unbounded(const SweepJob& job, const SearchGoal& goal);

/// The most families of degrees, and families with each microbatch, of one setting; while they are searched they take
/// some kilobytes and some hundred bytes each.
inline constexpr std::uint64_t kMostFamilies = std::uint64_t{1} << 20U;
inline constexpr std::uint64_t kMostCells = std::uint64_t{1} << 23U;
/// The most floors of families with each microbatch, over all settings that have floors of their own; eight bytes each.
inline constexpr std::uint64_t kMostFloors = std::uint64_t{1} << 27U;

/// Why the regions of a study would take too much memory, as a clause about its `space`; empty where they would not.
std::string why_too_many_regions(const SweepJob& job);

struct SearchProgress {
  std::uint64_t points = 0;      ///< number of points of the study
  results::FateCounts counts{};  ///< on rank 0 with those of other ranks, up to the round before
  double bound = 0;  ///< the best value of the first objective that the rest of the current setting can reach
  std::optional<BestPoint> best;
};

struct SearchOptions {
  EvaluatorFactory evaluator = simulator_factory();
  /// For executed steps: evaluates the hierarchical search that finds the points to execute first.
  EvaluatorFactory hints = simulator_factory();
  /// For simulated loads: gives their floors.
  EvaluatorFactory load_floors = simulator_factory({.load_floors = true});
  /// Called before each region is opened and every few milliseconds of an execution, never from two threads at once;
  /// the search stops where it returns false. May be empty.
  std::function<bool(const SearchProgress&)> go_on;
  /// Called before each point that is evaluated in full, never from two threads at once; where it returns false the
  /// point is not visited, and the search stops once those that are being visited are done. May be empty.
  std::function<bool()> may_visit;
  /// Called in the same way during the search for hints, beside `go_on`; where it returns false, the best so far are
  /// executed. May be empty.
  std::function<bool()> seek_hints;
  /// Whether a search that is stopped before it has found anything looks at some points all the same.
  bool probes = true;
  int threads = 1;  ///< number of threads of this process
  ranks::Ranks* together =
      nullptr;  ///< processes that search together by making this same call; null: this one alone
};

/// The most points that a search of executed steps executes first.
inline constexpr std::uint64_t kMostHints = 64;

/// Numbers of a race under faults.
struct RaceDraws {
  std::uint64_t made = 0;    ///< samples drawn, over all points
  std::uint64_t points = 0;  ///< points for which any were drawn
};

/// The most predictions that are kept, some 400 bytes each; if more points are visited, none are kept.
inline constexpr std::size_t kMostKeptPredictions = 1 << 18;

/// The result on rank 0; elsewhere it is empty.
struct SearchOutcome {
  std::vector<std::uint64_t> visited;   ///< ascending
  std::vector<Prediction> predictions;  ///< prediction of each visited point; empty where there are too many
  std::vector<BestPoint> best;          ///< the answer by its first objective, best first
  results::SearchInfo info;
  std::optional<RaceDraws> draws;  ///< for expected_step_time_s
  std::uint64_t given_up = 0;      ///< executions that were ended because they take longer than the answer
  /// Plans that the evaluator did not execute to their end, and that count as open.
  std::uint64_t too_large = 0;
};

/// Searches. `job` must be of a whole study, with why_unbounded(job, goal) empty. RankLost on rank 0.
SearchOutcome search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options);

}  // namespace shardscape::sweep
