// The best points that a search has found so far, and the test whether a region can add to them.
//
// Costs are step times, what is in proportion to them (of a plan's devices: energy and money per token), or reciprocals
// of rates that are in proportion to 1 / step time: smaller is better for all.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/spec/prediction.h"
#include "sweep/runner/block_worker.h"
#include "sweep/search/best_first.h"

namespace shardscape::sweep {

/// An objective for which floors are known.
enum class TimeObjective : std::uint8_t { step_time, expected_step_time, energy, cost, tokens, mfu };
/// Whether it is in proportion to the step time, not to its inverse.
constexpr bool is_time(TimeObjective objective) { return objective < TimeObjective::tokens; }
std::optional<TimeObjective> time_objective(std::string_view column);
/// The objective's value of a prediction, without faults.
double value_of(TimeObjective objective, const Prediction& prediction);
/// The cost of a value; it is its own inverse.
inline double cost_of(TimeObjective objective, double value) {
  return is_time(objective) ? value : 1 / value;
}

/// A point that may belong to the answer.
struct AnswerEntry {
  BestPoint point;
  double cost = 0, memory = 0;
};

class Answer {
 public:
  Answer(TimeObjective objective, const SearchGoal& goal);

  /// Offers a point with its value, expected under faults where the objective is; NaN where it has none.
  void offer(std::uint64_t id, const Prediction& prediction, double value);
  /// Offers a point that may be offered again, by a visit; it then counts once.
  void offer_hint(std::uint64_t id, const Prediction& prediction, double value);
  /// The points that are known, and a way to replace them all.
  [[nodiscard]] const std::vector<AnswerEntry>& entries() const { return entries_; }
  void replace(std::vector<AnswerEntry> entries);
  /// Whether points that cost at least `cost` and take at least `memory` bytes cannot belong to the answer.
  [[nodiscard]] bool cuts(double cost, double memory) const;
  /// The cost beyond which points that take at least `memory` bytes are cut off; infinite where there is no such cost.
  [[nodiscard]] double limit(double memory) const;
  /// The answer, best first.
  [[nodiscard]] std::vector<BestPoint> best() const;
  [[nodiscard]] std::optional<BestPoint> first() const { return first_; }
  [[nodiscard]] results::Better better() const;

 private:
  using Entry = AnswerEntry;
  void take(std::uint64_t id, const Prediction& prediction, double value);
  void offer_front(const Entry& entry);
  [[nodiscard]] auto before() const {
    return [better = better()](const Entry& a, const Entry& b) {
      return ranks_before(a.point, b.point, better);
    };
  }

  TimeObjective objective_;
  std::uint64_t count_;
  bool front_;
  std::unordered_set<std::uint64_t> hints_;  ///< ids offered as hints
  double slack_;                             ///< 1 + the relative amount by which the answer may be worse
  /// A front is sorted by cost; otherwise a heap with the worst in front.
  std::vector<Entry> entries_;
  std::optional<BestPoint> first_;
};

}  // namespace shardscape::sweep
