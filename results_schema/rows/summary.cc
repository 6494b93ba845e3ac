#include "results_schema/rows/summary.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::results {

SummaryBuilder::SummaryBuilder(std::vector<Better> directions, std::size_t top_count)
    : directions_(std::move(directions)), top_count_(top_count) {}

void SummaryBuilder::count(Tally& tally, std::uint64_t point_id, std::uint64_t points) {
  if (tally.count == 0 || point_id < tally.example) tally.example = point_id;
  tally.count += points;
}

void SummaryBuilder::add(std::uint64_t point_id, Status status, Reason reason,
                         std::span<const double> objectives) {
  SHARDSCAPE_CHECK(objectives.size() == directions_.size(), point_id, objectives.size());
  count(statuses_[static_cast<std::uint8_t>(status)], point_id);
  if (reason != Reason::none) count(reasons_[static_cast<std::uint8_t>(reason)], point_id);
  if (status != Status::ok || objectives.empty()) return;
  if (!candidate_.assign(point_id, objectives, directions_)) return;
  offer_top(candidate_);
  front_.offer(candidate_);
}

// A point that is among the best, or on the front, of all points is so in its part as well.
void SummaryBuilder::add(const Summary& part) {
  for (const CodeCount& code : part.statuses) count(statuses_[code.code], code.example, code.count);
  for (const CodeCount& code : part.reasons) count(reasons_[code.code], code.example, code.count);
  if (directions_.empty()) return;  // a damaged file may have ranked points but no objectives
  for (const RankedPoint& point : part.top) {
    if (candidate_.assign(point.point_id, point.values, directions_)) offer_top(candidate_);
  }
  for (const RankedPoint& point : part.pareto) {
    if (candidate_.assign(point.point_id, point.values, directions_)) front_.offer(candidate_);
  }
}

bool SummaryBuilder::ranks_before(const PointCosts& a, const PointCosts& b) {
  return a.costs[0] != b.costs[0] ? a.costs[0] < b.costs[0] : a.point_id < b.point_id;
}

void SummaryBuilder::offer_top(const PointCosts& entry) {
  if (top_.size() == top_count_ && (top_.empty() || !ranks_before(entry, top_.back()))) return;
  top_.insert(std::ranges::upper_bound(top_, entry, ranks_before), entry);
  if (top_.size() > top_count_) top_.pop_back();
}

RankedPoint SummaryBuilder::ranked(const PointCosts& entry) const {
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
  for (const PointCosts& entry : front_.points()) summary.pareto.push_back(ranked(entry));
  for (const PointCosts& entry : top_) summary.top.push_back(ranked(entry));
  return summary;
}

}  // namespace shardscape::results
