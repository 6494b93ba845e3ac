// What a search has found so far, and which regions can't add to it.
//
// Costs are step times, or reciprocals of rates that are in proportion to 1 / step time: smaller is better for both.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "engine/prediction.h"
#include "sweep/runner/block_worker.h"
#include "sweep/search/best_first.h"

namespace shardscape::sweep {

/// An objective with floors.
enum class TimeObjective : std::uint8_t { step_time, expected_step_time, tokens, mfu };
constexpr bool is_time(TimeObjective objective) {
  return objective == TimeObjective::step_time || objective == TimeObjective::expected_step_time;
}
std::optional<TimeObjective> time_objective(std::string_view column);
/// Without faults.
double value_of(TimeObjective objective, const Prediction& prediction);
/// The cost of a value, and its inverse.
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

  /// A point by its value, under faults where they belong to it; NaN where it has none.
  void offer(std::uint64_t id, const Prediction& prediction, double value);
  /// A point that may be offered again, and counts once.
  void offer_hint(std::uint64_t id, const Prediction& prediction, double value);
  /// All that is known, and becomes what is known.
  [[nodiscard]] const std::vector<AnswerEntry>& entries() const { return entries_; }
  void replace(std::vector<AnswerEntry> entries);
  /// Whether no point that costs at least `cost` and takes at least `memory` bytes belongs to the answer.
  [[nodiscard]] bool cuts(double cost, double memory) const;
  /// The cost beyond which points that take at least `memory` bytes are cut; infinite where there is none.
  [[nodiscard]] double limit(double memory) const;
  /// Best first.
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
  std::unordered_set<std::uint64_t> hints_;  ///< offered
  double slack_;                             ///< 1 + within
  std::vector<Entry> entries_;               ///< of a front by cost; else a heap, the worst in front
  std::optional<BestPoint> first_;
};

}  // namespace shardscape::sweep
