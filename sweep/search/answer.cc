#include "sweep/search/answer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardscape::sweep {

std::optional<TimeObjective> time_objective(std::string_view column) {
  if (column == "step_time_s") return TimeObjective::step_time;
  if (column == "expected_step_time_s") return TimeObjective::expected_step_time;
  if (column == "energy_per_token_j") return TimeObjective::energy;
  if (column == "cost_per_million_tokens") return TimeObjective::cost;
  if (column == "tokens_per_s_per_gpu") return TimeObjective::tokens;
  if (column == "mfu") return TimeObjective::mfu;
  return std::nullopt;
}

double value_of(TimeObjective objective, const Prediction& prediction) {
  switch (objective) {
    case TimeObjective::step_time:
    case TimeObjective::expected_step_time:
      return prediction.step_time.value();
    case TimeObjective::energy:
      return prediction.joules_per_token;
    case TimeObjective::cost:
      return prediction.cost_per_million_tokens;
    case TimeObjective::tokens:
      return prediction.tokens_per_s_per_gpu;
    case TimeObjective::mfu:
      break;
  }
  return prediction.mfu;
}

Answer::Answer(TimeObjective objective, const SearchGoal& goal)
    : objective_(objective),
      count_(goal.front && goal.objectives.size() == 1 ? 1 : goal.count),
      front_(goal.front && goal.objectives.size() > 1),
      slack_(1 + goal.within) {}

results::Better Answer::better() const {
  return is_time(objective_) ? results::Better::smaller : results::Better::larger;
}

void Answer::offer(std::uint64_t id, const Prediction& prediction, double value) {
  if (!hints_.contains(id)) take(id, prediction, value);
}

void Answer::offer_hint(std::uint64_t id, const Prediction& prediction, double value) {
  if (hints_.insert(id).second) take(id, prediction, value);
}

void Answer::take(std::uint64_t id, const Prediction& prediction, double value) {
  if (std::isnan(value)) return;
  const Entry entry{{value, id}, cost_of(objective_, value), prediction.memory_peak.value()};
  if (front_) return offer_front(entry);
  if (!first_ || ranks_before(entry.point, *first_, better())) first_ = entry.point;
  entries_.push_back(entry);
  std::ranges::push_heap(entries_, before());
  if (entries_.size() <= count_) return;
  std::ranges::pop_heap(entries_, before());
  entries_.pop_back();
}

void Answer::replace(std::vector<Entry> entries) {
  entries_ = std::move(entries);
  const auto first = front_ ? entries_.begin() : std::ranges::min_element(entries_, before());
  first_ = first == entries_.end() ? std::nullopt : std::optional(first->point);
}

void Answer::offer_front(const Entry& entry) {
  const auto beats = [&](const Entry& a, const Entry& b) {
    const bool as_good = a.cost <= b.cost && a.memory <= b.memory;
    const bool equal = a.cost == b.cost && a.memory == b.memory;
    return as_good && (!equal || a.point.point_id < b.point.point_id);
  };
  if (std::ranges::any_of(entries_, [&](const Entry& known) { return beats(known, entry); })) return;
  std::erase_if(entries_, [&](const Entry& known) { return beats(entry, known); });
  const auto less = [](const Entry& a, const Entry& b) { return a.cost < b.cost; };
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, less), entry);
  first_ = entries_.front().point;
}

bool Answer::cuts(double cost, double memory) const {
  if (!front_) return entries_.size() == count_ && cost * slack_ > entries_.front().cost;
  // Along the front memory falls as costs rise, so that among the entries that cost less the last one takes the least.
  const auto less = [](const Entry& entry, double limit) { return entry.cost < limit; };
  const auto end = std::lower_bound(entries_.begin(), entries_.end(), cost * slack_, less);
  return end != entries_.begin() && std::prev(end)->memory <= memory * slack_;
}

double Answer::limit(double memory) const {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (!front_) return entries_.size() == count_ ? entries_.front().cost / slack_ : kNone;
  const auto beats = [&](const Entry& entry) { return entry.memory <= memory * slack_; };
  const auto first = std::ranges::find_if(entries_, beats);
  return first == entries_.end() ? kNone : first->cost / slack_;
}

std::vector<BestPoint> Answer::best() const {
  std::vector<BestPoint> points;
  for (const Entry& entry : entries_) points.push_back(entry.point);
  if (!front_)
    std::ranges::sort(points,
                      [&](const BestPoint& a, const BestPoint& b) { return ranks_before(a, b, better()); });
  return points;
}

}  // namespace shardscape::sweep
