#include "results_schema/rows/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"
#include "engine/base/words.h"

namespace shardscape::results {

namespace {

/// Takes the next word off the front of `text` and returns it; empty where there is none.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

}  // namespace

const std::vector<std::string>& StoredRows::measures(const std::vector<std::string>& objectives) const {
  return choice == RowChoice::top ? objectives : front;
}

std::string to_string(const StoredRows& rows) {
  std::string text(name_of(rows.choice));
  if (rows.choice == RowChoice::top) text += fmt::format(" {}", rows.count);
  if (rows.choice == RowChoice::pareto) text += ' ' + joined(rows.front, " ");
  return text;
}

std::optional<StoredRows> parse_stored_rows(std::string_view text) {
  const auto choice = parse_enum<RowChoice>(take_word(text));
  if (!choice) return std::nullopt;
  StoredRows rows{*choice, 0, {}};
  std::string_view word = take_word(text);
  if (rows.choice == RowChoice::top) {
    rows.count = to_number<std::uint64_t>(word).value_or(0);
    if (rows.count == 0) return std::nullopt;
    word = take_word(text);
  }
  for (; rows.choice == RowChoice::pareto && !word.empty(); word = take_word(text))
    rows.front.emplace_back(word);
  const bool whole = word.empty() && (rows.choice != RowChoice::pareto || !rows.front.empty());
  return whole ? std::optional(rows) : std::nullopt;
}

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

bool PointCosts::assign(std::uint64_t id, std::span<const double> values,
                        std::span<const Better> directions) {
  SHARDSCAPE_CHECK(values.size() == directions.size(), id, values.size());
  point_id = id;
  costs.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return false;
    // Adding +0 turns -0 into +0, so that equal values have equal bits.
    costs[i] = (directions[i] == Better::larger ? -values[i] : values[i]) + 0.0;
  }
  return true;
}

bool PointCosts::dominates(const PointCosts& a, const PointCosts& b) {
  for (std::size_t i = 0; i < a.costs.size(); ++i) {
    if (a.costs[i] > b.costs[i]) return false;
  }
  return a.costs != b.costs || a.point_id <= b.point_id;
}

// The front is kept in ascending order of costs. A point that dominates another has no larger first cost, so that it
// stands before it or has the same first cost.
bool ParetoFront::offer(const PointCosts& point) {
  const double first = point.costs[0];
  for (const PointCosts& other : points_) {
    if (other.costs[0] > first) break;
    if (PointCosts::dominates(other, point)) return false;
  }
  const auto from =
      std::ranges::lower_bound(points_, first, {}, [](const PointCosts& other) { return other.costs[0]; });
  points_.erase(std::remove_if(from, points_.end(),
                               [&](const PointCosts& other) { return PointCosts::dominates(point, other); }),
                points_.end());
  points_.insert(std::ranges::upper_bound(points_, point.costs, {}, &PointCosts::costs), point);
  return true;
}

}  // namespace shardscape::results
