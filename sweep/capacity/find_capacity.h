// Capacity: the fewest GPUs, and the plan on them, that serve a load and keep what the study promises and asks for.
//
// Numbers of GPUs are taken up in ascending order, and on each of them every plan of the study is looked at. Most are
// told without a simulation:
//
//   rule, constraint, memory   as the evaluator says it
//   floors                     fewer requests are served by the fastest iterations than come, or no request can be as
//                              quick as is promised (engine/serving/live/load_floor.h)
//
// The others are simulated. The first number of GPUs with a plan that misses nothing is the answer, so nothing is taken
// to grow with the number of GPUs; of several plans the best by the study's first objective, then the smallest point
// id: that of a sweep over all numbers and plans. Results are the same for any number of threads.
//
// Where devices have prices that differ, the answer is what costs the least an hour: numbers are taken up until so many
// of the cheapest device cost as much as the best plan; of plans that cost the same, that on the fewest GPUs.
//
// Servers that do not keep up with the requests miss, promised or not; what their latencies would be in a run of some
// length says nothing, and is not counted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/enum_names.h"
#include "sweep/runner/evaluator.h"
#include "sweep/runner/sweep_job.h"

namespace shardscape::sweep {

/// What became of plans on the numbers of GPUs that were looked at; rate_floor and latency_floor: cut off by a floor.
enum class CapacityFate : std::uint8_t { simulated, rate_floor, latency_floor, memory, constraint, rule };

/// A plan on a number of GPUs.
struct CapacityPoint {
  std::uint64_t id = 0;
  PointIndex point;
  std::int64_t gpus = 0;
  Prediction prediction;  ///< or the floors of one that was not simulated
  bool simulated = false;
  std::vector<results::LimitCheck::Miss> misses;  ///< of one that was not simulated, those that floors show

  double cost_per_hour = 0;  ///< of all GPUs, those of both pools; 0 where a device has no price

  /// The largest of its misses; 0 where it misses nothing.
  [[nodiscard]] double worst() const;
};

/// How often plans that fit miss a bound, by the code of the reason.
struct CapacityKill {
  std::size_t reason = 0;
  std::uint64_t plans = 0;
  double least = 0;  ///< the least by which it is missed
};

/// The answer for one of the study's workloads.
struct CapacityAnswer {
  std::size_t workload = 0;  ///< index
  std::optional<CapacityPoint> best;
  /// Where nothing does: the plan whose largest miss is the least; of those that keep up with the requests, if any do.
  /// Where floors cut off all plans: the nearest by its floors.
  std::optional<CapacityPoint> nearest;
  /// Where something does: the nearest plan, in the same sense, on the largest smaller number of GPUs that rules,
  /// constraints and memory leave a plan on.
  std::optional<CapacityPoint> fewer;
  EnumArray<CapacityFate, std::uint64_t> fates{};  ///< plans by what became of them
  EnumArray<Reason, std::uint64_t> rejected{};     ///< plans of CapacityFate::rule, by their reason
  /// The least number of GPUs with a plan that had to be simulated: all smaller ones are cut off without; 0 where there
  /// is none.
  std::int64_t least_simulated = 0;
  std::int64_t most_gpus = 0;            ///< the largest number all of whose plans were looked at
  std::vector<CapacityKill> kills;       ///< most plans first
  std::vector<CapacityPoint> simulated;  ///< by id
  bool by_price = false;  ///< whether the answer is the cheapest rather than that of the fewest GPUs
  /// False where it was stopped. Fewer GPUs than those of `best` do not do all the same, but other plans on as many,
  /// which have not been looked at, may be better.
  bool complete = true;

  [[nodiscard]] std::uint64_t looked_at() const;
};

struct CapacityProgress {
  std::size_t workload = 0;
  std::int64_t gpus = 0;
  std::uint64_t simulated = 0;  ///< plans, of this workload so far
};

struct CapacityOptions {
  int threads = 1;
  EvaluatorFactory evaluator = simulator_factory();
  EvaluatorFactory floors = simulator_factory({.load_floors = true});
  bool use_floors = true;  ///< false: every plan that fits is simulated
  /// Told before each number of GPUs. May be empty.
  std::function<void(const CapacityProgress&)> tell;
  /// Asked before each plan and every few milliseconds of its simulation, by any thread: the search stops where it
  /// returns false, as it then does ever after. Plans under way count as not looked at. May be empty.
  std::function<bool()> go_on;
};

/// One answer for each workload of the job's study, which must serve an open loop.
std::vector<CapacityAnswer> find_capacity(const SweepJob& job, const CapacityOptions& options);

}  // namespace shardscape::sweep
