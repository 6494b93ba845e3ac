#include "results_schema/report/axis_worth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/nearest_rank.h"

namespace shardscape::report {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr std::array<double, 3> kShares = {0.25, 0.5, 0.75};

/// Calls `use(place, row)` with the place of the value of each row; `add` makes one for a value that is new.
template <class Add, class Use>
void for_each_place(std::map<double, std::size_t>& places, std::span<const double> axis, const Add& add,
                    const Use& use) {
  auto last = places.end();  // an axis keeps its value from row to row
  for (std::size_t i = 0; i < axis.size(); ++i) {
    if (std::isnan(axis[i])) continue;
    if (last == places.end() || last->first != axis[i]) {
      last = places.try_emplace(axis[i], places.size()).first;
      add(last->second);
    }
    use(last->second, i);
  }
}

}  // namespace

AxisWorth::AxisWorth(std::size_t axes, std::span<const double> sample, results::Better better)
    : sign_(better == results::Better::larger ? -1 : 1), axes_(axes) {
  for (const double objective : sample) edges_.push_back(sign_ * objective);
  std::ranges::sort(edges_);
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
}

std::size_t AxisWorth::bin_of(double cost) const {
  const auto edge = std::ranges::lower_bound(edges_, cost);
  const auto below = static_cast<std::size_t>(edge - edges_.begin());
  return 2 * below + (edge != edges_.end() && *edge == cost ? 1 : 0);
}

void AxisWorth::rate(const RatedRows& rows) {
  costs_.resize(rows.objective.size());
  bins_.assign(rows.objective.size(), kNone);
  for (std::size_t i = 0; i < costs_.size(); ++i) {
    if (rows.feasible[i] == 0 || std::isnan(rows.objective[i])) continue;
    costs_[i] = sign_ * rows.objective[i];
    bins_[i] = static_cast<std::uint32_t>(bin_of(costs_[i]));
  }
}

void AxisWorth::count(const RatedRows& rows) {
  rate(rows);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    std::vector<Group>& groups = axes_[a].groups;
    const auto add = [&](std::size_t place) {
      if (place == groups.size()) groups.emplace_back().counts.resize(2 * edges_.size() + 1);
    };
    for_each_place(axes_[a].places, rows.axes[a], add, [&](std::size_t place, std::size_t i) {
      Group& group = groups[place];
      ++group.points;
      group.feasible += rows.feasible[i];
      if (bins_[i] == kNone) return;
      if (group.ranked == 0 || costs_[i] < group.best) {
        group.best = costs_[i];
        group.best_row = rows.first + i;
      }
      if (group.ranked == 0 || costs_[i] > group.worst) group.worst = costs_[i];
      ++group.ranked;
      ++group.counts[bins_[i]];
    });
  }
}

AxisWorth::Quantile AxisWorth::found(const Group& group, double share, std::span<const double> edges) {
  Quantile quantile;
  quantile.cost = kNaN;
  if (group.ranked == 0) return quantile;
  std::size_t rank = nearest_rank_index(group.ranked, share);
  while (rank >= group.counts[quantile.bin]) rank -= group.counts[quantile.bin++];
  quantile.rank = rank;
  quantile.known = quantile.bin % 2 == 1;
  if (quantile.known) quantile.cost = edges[quantile.bin / 2];
  return quantile;
}

void AxisWorth::end_count() {
  wanted_.assign(2 * edges_.size() + 1, false);
  for (Axis& axis : axes_) {
    for (Group& group : axis.groups) {
      for (std::size_t q = 0; q < kShares.size(); ++q) {
        group.quantiles[q] = found(group, kShares[q], edges_);
        if (group.quantiles[q].known) continue;
        wanted_[group.quantiles[q].bin] = true;
        collects_ = true;
      }
      group.counts = {};
    }
  }
}

void AxisWorth::collect(const RatedRows& rows) {
  rate(rows);
  for (std::uint32_t& bin : bins_) {
    if (bin != kNone && !wanted_[bin]) bin = kNone;
  }
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    std::vector<Group>& groups = axes_[a].groups;
    const auto nothing_new = [](std::size_t) {};
    for_each_place(axes_[a].places, rows.axes[a], nothing_new, [&](std::size_t place, std::size_t i) {
      if (bins_[i] == kNone) return;
      for (Quantile& quantile : groups[place].quantiles) {
        if (!quantile.known && quantile.bin == bins_[i]) quantile.costs.push_back(costs_[i]);
      }
    });
  }
}

std::vector<AxisValue> AxisWorth::values(std::size_t axis) const {
  const auto objective = [&](const Quantile& quantile) {
    if (quantile.known) return sign_ * quantile.cost;
    std::vector<double> costs = quantile.costs;
    const auto at = costs.begin() + static_cast<std::ptrdiff_t>(quantile.rank);
    std::ranges::nth_element(costs, at);
    return sign_ * *at;
  };
  std::vector<AxisValue> list;
  for (const auto& [value, place] : axes_[axis].places) {
    const Group& group = axes_[axis].groups[place];
    const bool any = group.ranked > 0;
    const auto& [quarter, median, three_quarters] = group.quantiles;
    list.push_back({value, group.points, group.feasible, any ? sign_ * group.best : kNaN, objective(quarter),
                    objective(median), objective(three_quarters), any ? sign_ * group.worst : kNaN,
                    group.best_row});
  }
  return list;
}

double spread_of_best(std::span<const AxisValue> values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const AxisValue& value : values) {
    if (std::isnan(value.best)) continue;
    low = std::min(low, value.best);
    high = std::max(high, value.best);
  }
  return low > 0 && high > low ? high / low - 1 : 0;
}

}  // namespace shardscape::report
