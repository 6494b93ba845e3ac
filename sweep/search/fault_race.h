// Points raced by their expected time under faults: which of them belong to an answer, with few of the draws that a
// sweep makes of each.
//
// The expected time of a point is its healthy time t times 1 + the mean slowdown over the study's samples, which are
// the same for every point. No sick link or device makes a step faster in the hierarchical mode (sweep/study/README.md,
// Faults) where every price is exact; prices of contended collectives may be e = kCollectiveTolerance too long, that of
// the healthy machine and not that of the sick one, so slowdowns are >= -e. (A dead link may make it faster: what takes
// a detour leaves links that it shared. Studies with such faults are not raced.) After some of N samples, u of them
// without a finite time and the others with slowdowns that add up to S, m of them missing, the expected time is at
// least
//
//     t (1 + (S - m e) / (N - u))
//
// for the mean is over samples with a finite time, N - u of them at most; with fewer of the missing ones it is
// larger, S being no less than -e for each sample that it adds up. The same holds where `target_ci` ends the sampling
// sooner: the mean is then over fewer of the missing samples. So a race is decided by bounds that hold for certain,
// not by confidence: a point leaves it when its bound lies beyond the answer, and is finished with the sum that a
// sweep makes, in its order, to the bit.
//
// The points of a race wait in the search's queue by their bounds; the one with the least is drawn on, each time as
// many samples again as it has (Jamieson and Talwalkar 2016, "Non-stochastic best arm identification", halve the
// field in as many rounds; here bounds choose who goes on). Samples that take most away from a link or a device are
// drawn first, unless `target_ci` asks for the study's order: the bound rises sooner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/spec/collective_tolerance.h"
#include "sweep/runner/evaluator.h"
#include "sweep/runner/fault_sampling.h"

namespace shardscape::sweep {

/// The expected time of a step is at least this share of the healthy time.
inline constexpr double kLeastExpected = 1 - kCollectiveTolerance;

/// Number of samples that are drawn of a point before it waits for the first time.
inline constexpr std::size_t kFirstDraws = 8;

/// Why points cannot be raced under such faults, as a clause; empty where they can.
std::string why_no_race(const std::optional<FaultStudy>& faults);

class FaultRace {
 public:
  /// `draws` must outlive the race.
  explicit FaultRace(const FaultDraws& draws);

  /// Adds a point; returns the number of its place.
  std::uint32_t join(std::uint64_t point_id);
  [[nodiscard]] std::uint64_t point(std::uint32_t runner) const { return runners_[runner].point_id; }

  struct Standing {
    /// Bound of the expected time of a step, or that time if finished; NaN where no sample has one.
    double seconds = 0;
    bool finished = false;
  };
  /// Draws more samples. `evaluator` must have evaluated the point last, with the result `healthy`, which is ok.
  Standing draw_on(std::uint32_t runner, const Prediction& healthy, Evaluator& evaluator);

  /// Removes all points.
  void clear() { runners_.clear(); }
  /// Number of samples drawn since the race began, over all points.
  [[nodiscard]] std::uint64_t draws_made() const { return made_; }
  [[nodiscard]] std::uint64_t drawn_points() const { return drawn_points_; }

 private:
  struct Runner {
    std::uint64_t point_id = 0;
    std::vector<double> slowdowns;  ///< slowdowns of the samples so far, in the order of the race
    StoppingRule rule{std::nullopt};
    bool enough = false;
  };
  [[nodiscard]] Standing standing(const Runner& runner, Seconds healthy) const;

  const FaultDraws& draws_;
  std::vector<std::size_t> order_;  ///< order in which samples are drawn
  std::vector<Runner> runners_;
  std::uint64_t made_ = 0, drawn_points_ = 0;
};

}  // namespace shardscape::sweep
