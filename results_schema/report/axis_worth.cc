// Counts objectives in bins by axis value, finds in which bin each quantile lies, and collects those bins in a second
// pass.
#include "results_schema/report/axis_worth.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/nearest_rank.h"

namespace shardscape::report {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<double, 3> kShares = {0.25, 0.5, 0.75};

}  // namespace

AxisWorth::AxisWorth(std::size_t axes, std::span<const double> sample, results::Better better)
    : sign_(better == results::Better::larger ? -1 : 1), axes_(axes) {
  for (const double objective : sample) edges_.push_back(sign_ * objective);
  std::ranges::sort(edges_);
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
}

AxisWorth::Group& AxisWorth::Axis::group(double value, std::size_t bins) {
  if (!groups.empty()) {
    if (groups[last].value == value) return groups[last];
    if (const std::size_t next = groups[last].next; groups[next].value == value) return groups[last = next];
  }
  const auto [found, fresh] = places.try_emplace(value, groups.size());
  if (fresh) {
    groups.emplace_back().value = value;
    groups.back().counts.resize(bins);
  }
  groups[last].next = found->second;
  return groups[last = found->second];
}

std::size_t AxisWorth::bin_of(double cost) const {
  const auto edge = std::ranges::lower_bound(edges_, cost);
  const auto below = static_cast<std::size_t>(edge - edges_.begin());
  return 2 * below + (edge != edges_.end() && *edge == cost ? 1 : 0);
}

void AxisWorth::rate(const RatedRows& rows) {
  ranked_.clear();
  feasible_before_.assign(1, 0);
  ranked_before_.assign(1, 0);
  for (std::uint32_t i = 0; i < rows.objective.size(); ++i) {
    if (rows.feasible[i] != 0 && !std::isnan(rows.objective[i])) {
      const double cost = sign_ * rows.objective[i];
      ranked_.push_back({i, static_cast<std::uint32_t>(bin_of(cost)), cost});
    }
    feasible_before_.push_back(feasible_before_.back() + rows.feasible[i]);
    ranked_before_.push_back(static_cast<std::uint32_t>(ranked_.size()));
  }
}

void AxisWorth::count(const RatedRows& rows) {
  rate(rows);
  const std::size_t bins = 2 * edges_.size() + 1;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const std::span<const double> values = rows.axes[a];
    // Consecutive rows with one value are handled together.
    for (std::size_t i = 0, end = 0; i < values.size(); i = end) {
      end = i + 1;
      if (std::isnan(values[i])) continue;
      while (end < values.size() && values[end] == values[i]) ++end;
      Group& group = axes_[a].group(values[i], bins);
      group.points += end - i;
      group.feasible += feasible_before_[end] - feasible_before_[i];
      for (std::size_t k = ranked_before_[i]; k < ranked_before_[end]; ++k) group.add(ranked_[k], rows.first);
    }
  }
}

void AxisWorth::Group::add(const Ranked& ranked_row, std::size_t first) {
  if (ranked == 0 || ranked_row.cost < best) {
    best = ranked_row.cost;
    best_row = first + ranked_row.row;
  }
  if (ranked == 0 || ranked_row.cost > worst) worst = ranked_row.cost;
  ++ranked;
  ++counts[ranked_row.bin];
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
  std::erase_if(ranked_, [&](const Ranked& row) { return !wanted_[row.bin]; });
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    for (const Ranked& row : ranked_) {
      const double value = rows.axes[a][row.row];
      if (std::isnan(value)) continue;
      for (Quantile& quantile : axes_[a].group(value, 0).quantiles) {
        if (!quantile.known && quantile.bin == row.bin) quantile.costs.push_back(row.cost);
      }
    }
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
