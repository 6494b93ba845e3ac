#include "results_schema/summary.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::results {

SummaryBuilder::SummaryBuilder(std::vector<Better> directions, std::size_t top_count)
    : directions_(std::move(directions)), top_count_(top_count) {
  candidate_.costs.resize(directions_.size());
}

void SummaryBuilder::count(Tally& tally, std::uint64_t point_id, std::uint64_t points) {
  if (tally.count == 0 || point_id < tally.example) tally.example = point_id;
  tally.count += points;
}

void SummaryBuilder::add(std::uint64_t point_id, Status status, Reason reason,
                         std::span<const double> objectives) {
  SHARDSCAPE_CHECK(objectives.size() == directions_.size(), point_id, objectives.size());
  count(statuses_[static_cast<std::uint8_t>(status)], point_id);
  if (reason != Reason::none) count(reasons_[static_cast<std::uint8_t>(reason)], point_id);
  if (status != Status::ok || objectives.empty() || !take(point_id, objectives)) return;
  offer_top(candidate_);
  offer_front(candidate_);
}

// A point among the best of all, or on the front of all, is so in its part.
void SummaryBuilder::add(const Summary& part) {
  for (const CodeCount& code : part.statuses) count(statuses_[code.code], code.example, code.count);
  for (const CodeCount& code : part.reasons) count(reasons_[code.code], code.example, code.count);
  for (const RankedPoint& point : part.top) {
    if (take(point.point_id, point.values)) offer_top(candidate_);
  }
  for (const RankedPoint& point : part.pareto) {
    if (take(point.point_id, point.values)) offer_front(candidate_);
  }
}

bool SummaryBuilder::take(std::uint64_t point_id, std::span<const double> objectives) {
  SHARDSCAPE_CHECK(objectives.size() == directions_.size(), point_id, objectives.size());
  candidate_.point_id = point_id;
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (std::isnan(objectives[i])) return false;
    // Adding +0 makes the two zeros one, so that equal values are equal bits.
    candidate_.costs[i] = (directions_[i] == Better::larger ? -objectives[i] : objectives[i]) + 0.0;
  }
  return true;
}

bool SummaryBuilder::dominates(const Entry& a, const Entry& b) {
  for (std::size_t i = 0; i < a.costs.size(); ++i) {
    if (a.costs[i] > b.costs[i]) return false;
  }
  return a.costs != b.costs || a.point_id <= b.point_id;
}

bool SummaryBuilder::ranks_before(const Entry& a, const Entry& b) {
  return a.costs[0] != b.costs[0] ? a.costs[0] < b.costs[0] : a.point_id < b.point_id;
}

void SummaryBuilder::offer_top(const Entry& entry) {
  if (top_.size() == top_count_ && (top_.empty() || !ranks_before(entry, top_.back()))) return;
  top_.insert(std::ranges::upper_bound(top_, entry, ranks_before), entry);
  if (top_.size() > top_count_) top_.pop_back();
}

// The front is kept in ascending order of costs. Whoever dominates an entry has no larger first cost, hence
// stands before it or costs the same.
void SummaryBuilder::offer_front(const Entry& entry) {
  const double first = entry.costs[0];
  for (const Entry& other : front_) {
    if (other.costs[0] > first) break;
    if (dominates(other, entry)) return;
  }
  const auto from =
      std::ranges::lower_bound(front_, first, {}, [](const Entry& other) { return other.costs[0]; });
  front_.erase(
      std::remove_if(from, front_.end(), [&](const Entry& other) { return dominates(entry, other); }),
      front_.end());
  front_.insert(std::ranges::upper_bound(front_, entry.costs, {}, &Entry::costs), entry);
}

RankedPoint SummaryBuilder::ranked(const Entry& entry) const {
  RankedPoint point{entry.point_id, entry.costs};
  for (std::size_t i = 0; i < directions_.size(); ++i) {
    if (directions_[i] == Better::larger) point.values[i] = -entry.costs[i] + 0.0;
  }
  return point;
}

Summary SummaryBuilder::finish() const {
  Summary summary;
  for (unsigned code = 0; code < statuses_.size(); ++code) {
    const auto as_code = static_cast<std::uint8_t>(code);
    if (const Tally& t = statuses_[code]; t.count > 0)
      summary.statuses.push_back({as_code, t.count, t.example});
    if (const Tally& t = reasons_[code]; t.count > 0)
      summary.reasons.push_back({as_code, t.count, t.example});
  }
  for (const Entry& entry : front_) summary.pareto.push_back(ranked(entry));
  for (const Entry& entry : top_) summary.top.push_back(ranked(entry));
  return summary;
}

}  // namespace shardscape::results
