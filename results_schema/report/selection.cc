#include "results_schema/report/selection.h"

#include "engine/base/counter_rng.h"

namespace shardscape::report {

namespace {

using results::Better;

std::vector<std::size_t> rows_of(const std::vector<std::pair<double, std::size_t>>& ranked) {
  std::vector<std::size_t> rows;
  for (const auto& [cost, row] : ranked) rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<std::size_t> ranked_rows(std::span<const double> values, Better better) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!std::isnan(values[row])) rows.push_back(row);
  }
  std::ranges::sort(rows, [&](std::size_t a, std::size_t b) {
    if (values[a] == values[b]) return a < b;
    return better == Better::larger ? values[a] > values[b] : values[a] < values[b];
  });
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (std::isnan(values[row])) rows.push_back(row);
  }
  return rows;
}

std::vector<std::size_t> BestRows::rows() { return rows_of(best_.sorted()); }

std::vector<std::size_t> FrontRows::rows() const {
  std::vector<std::size_t> rows;
  for (const results::RankedPoint& point : builder_.finish().pareto) rows.push_back(point.point_id);
  return rows;
}

void FrontRowsPerGroup::offer(std::size_t row, double group, std::span<const double> values) {
  if (std::isnan(group)) return;
  fronts_.try_emplace(group, directions_).first->second.offer(row, values);
}

std::vector<std::size_t> FrontRowsPerGroup::rows() const {
  std::vector<std::size_t> rows;
  for (const auto& [group, front] : fronts_) {
    for (const std::size_t row : front.rows()) rows.push_back(row);
  }
  return rows;
}

std::uint64_t lot_of(std::uint64_t point_id) {
  constexpr std::uint64_t kSeed = 0;
  return CounterRng(kSeed, point_id).bits();
}

std::vector<std::size_t> SampledRows::drawn() {
  std::vector<std::size_t> rows;
  for (const auto& [lot, row] : drawn_.sorted()) rows.push_back(row);
  std::ranges::sort(rows);
  return rows;
}

std::vector<std::size_t> SampledRows::rows(std::span<const std::size_t> keep) {
  if (offered_ <= limit_) return drawn();
  std::vector<std::size_t> rows(keep.begin(), keep.end());
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const std::size_t kept = rows.size();
  for (const auto& [lot, row] : drawn_.sorted()) {
    if (rows.size() >= limit_) break;
    if (!std::binary_search(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(kept), row))
      rows.push_back(row);
  }
  std::ranges::sort(rows);
  return rows;
}

}  // namespace shardscape::report
