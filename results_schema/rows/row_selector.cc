#include "results_schema/rows/row_selector.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::results {

RowSelector::RowSelector(const StoredRows& rows, std::vector<Better> directions, double bound)
    : choice_(rows.choice), count_(rows.count), directions_(std::move(directions)), bound_(bound) {
  SHARDSCAPE_CHECK(choice_ == RowChoice::feasible || !directions_.empty(), directions_.size());
}

bool RowSelector::offer(std::uint64_t point_id, std::span<const double> values) {
  if (choice_ == RowChoice::all || choice_ == RowChoice::feasible) return true;
  if (!point_.assign(point_id, values, directions_)) return false;
  return choice_ == RowChoice::top ? offer_top() : front_.offer(point_);
}

bool RowSelector::offer_top() {
  const std::pair offered(point_.costs.front(), point_.point_id);
  if (offered.first > bound()) return false;
  if (top_.size() == count_) {
    if (offered >= top_.top()) return false;
    top_.pop();
  }
  top_.push(offered);
  if (top_.size() == count_) bound_.store(std::min(bound(), top_.top().first), std::memory_order_relaxed);
  return true;
}

std::vector<std::uint64_t> RowSelector::chosen() const {
  SHARDSCAPE_CHECK(choice_ != RowChoice::feasible, directions_.size());
  std::vector<std::uint64_t> ids;
  for (const PointCosts& point : front_.points()) ids.push_back(point.point_id);
  for (auto left = top_; !left.empty(); left.pop()) ids.push_back(left.top().second);
  std::ranges::sort(ids);
  return ids;
}

}  // namespace shardscape::results
