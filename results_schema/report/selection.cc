#include "results_schema/report/selection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "engine/base/counter_rng.h"
#include "results_schema/summary.h"

namespace shardscape::report {

namespace {

using results::Better;

std::vector<std::size_t> rows_with_value(std::span<const double> values) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!std::isnan(values[row])) rows.push_back(row);
  }
  return rows;
}

/// Orders rows that have a value.
struct Before {
  std::span<const double> values;
  Better better;
  bool operator()(std::size_t a, std::size_t b) const {
    if (values[a] == values[b]) return a < b;
    return better == Better::larger ? values[a] > values[b] : values[a] < values[b];
  }
};

}  // namespace

std::vector<std::size_t> ranked_values(std::span<const double> values, Better better) {
  std::vector<std::size_t> rows = rows_with_value(values);
  std::ranges::sort(rows, Before{values, better});
  return rows;
}

std::vector<std::size_t> ranked_rows(std::span<const double> values, Better better) {
  std::vector<std::size_t> rows = ranked_values(values, better);
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (std::isnan(values[row])) rows.push_back(row);
  }
  return rows;
}

std::vector<std::size_t> best_rows(std::span<const double> values, Better better, std::size_t count) {
  std::vector<std::size_t> rows = rows_with_value(values);
  count = std::min(count, rows.size());
  const auto end = rows.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(rows.begin(), end, rows.end(), Before{values, better});
  rows.resize(count);
  return rows;
}

std::vector<std::size_t> pareto_rows(std::span<const std::vector<double>> columns,
                                     std::span<const Better> directions) {
  if (columns.empty()) return {};
  results::SummaryBuilder builder({directions.begin(), directions.end()});
  std::vector<double> values(columns.size());
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) values[i] = columns[i][row];
    builder.add(row, Status::ok, Reason::none, values);
  }
  std::vector<std::size_t> front;
  for (const results::RankedPoint& point : builder.finish().pareto) front.push_back(point.point_id);
  return front;
}

std::vector<std::size_t> pareto_rows_per_group(std::span<const double> groups,
                                               std::span<const std::vector<double>> columns,
                                               std::span<const results::Better> directions) {
  std::map<double, std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (!std::isnan(groups[row])) rows_of[groups[row]].push_back(row);
  }
  std::vector<std::size_t> kept;
  for (const auto& [group, rows] : rows_of) {
    std::vector<std::vector<double>> parts(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      for (const std::size_t row : rows) parts[i].push_back(columns[i][row]);
    }
    for (const std::size_t i : pareto_rows(parts, directions)) kept.push_back(rows[i]);
  }
  return kept;
}

std::vector<std::size_t> sample_rows(std::span<const std::uint64_t> ids, std::span<const std::size_t> keep,
                                     std::size_t limit) {
  std::vector<std::size_t> rows;
  if (ids.size() <= limit) {
    rows.resize(ids.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    return rows;
  }
  std::vector<bool> kept(ids.size());
  for (const std::size_t row : keep) {
    if (!kept[row]) rows.push_back(row);
    kept[row] = true;
  }
  if (rows.size() < limit) {
    constexpr std::uint64_t kSeed = 0;
    std::vector<std::pair<std::uint64_t, std::size_t>> lots;  // drawn per id; the smallest win
    for (std::size_t row = 0; row < ids.size(); ++row) {
      if (!kept[row]) lots.emplace_back(CounterRng(kSeed, ids[row]).bits(), row);
    }
    const std::size_t room = std::min(limit - rows.size(), lots.size());
    std::ranges::nth_element(lots, lots.begin() + static_cast<std::ptrdiff_t>(room));
    for (std::size_t i = 0; i < room; ++i) rows.push_back(lots[i].second);
  }
  std::ranges::sort(rows);
  return rows;
}

}  // namespace shardscape::report
