#include "sweep/evidence/summarise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace shardscape::evidence {

namespace {

/// Upper ends of the bands of GPUs: a node, a rack, a pod. Beyond each, communication crosses other links.
constexpr std::int64_t kBands[] = {8, 64, 512};

int band_of(std::int64_t gpus) {
  return static_cast<int>(std::ranges::lower_bound(kBands, gpus) - std::begin(kBands));
}

auto key_of(const Residual& residual) {
  const Regime& r = residual.regime;
  return std::tuple(r.phase, r.device, r.precision, r.model_kind, r.stack, band_of(r.gpus));
}

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Cell cell_of(const std::vector<const Residual*>& rows) {
  Cell cell;
  cell.regime = rows.front()->regime;
  cell.regime.gpus = 1;
  cell.most = rows.front()->degrees;
  cell.gpus_low = cell.gpus_high = rows.front()->regime.gpus;
  std::map<std::string, double> rows_of_plan;
  std::int64_t alone = 0;
  for (const Residual* row : rows) {
    cell.gpus_low = std::min(cell.gpus_low, row->regime.gpus);
    cell.gpus_high = std::max(cell.gpus_high, row->regime.gpus);
    cell.most = most_of(cell.most, row->degrees);
    if (row->plan.empty()) {
      ++alone;
    } else {
      ++rows_of_plan[row->plan];
    }
  }
  cell.rows = static_cast<std::int64_t>(rows.size());
  cell.plans = alone + static_cast<std::int64_t>(rows_of_plan.size());
  std::vector<std::pair<double, double>> signed_errors, errors;
  for (const Residual* row : rows) {
    const double weight = row->plan.empty() ? 1 : 1 / rows_of_plan[row->plan];
    signed_errors.emplace_back(row->error, weight);
    errors.emplace_back(std::abs(row->error), weight);
  }
  cell.bias = rounded(weighted_quantile(std::move(signed_errors), 0.5));
  constexpr double kLeast = 1e-4;  // a sigma that rounds to 0 would claim certainty
  cell.sigma = std::max(kLeast, rounded(weighted_quantile(std::move(errors), kOneSigma)));
  return cell;
}

}  // namespace

double weighted_quantile(std::vector<std::pair<double, double>> values, double q) {
  std::ranges::sort(values);
  double whole = 0, sum = 0;
  for (const auto& [value, weight] : values) whole += weight;
  constexpr double kRounding = 1e-9;  // tolerance, since sums of weights are rounded
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (sum >= (q - kRounding) * whole) return value;
  }
  return values.back().first;
}

Table summarise(std::span<const Residual> residuals) {
  std::map<decltype(key_of(residuals.front())), std::vector<const Residual*>> groups;
  for (const Residual& residual : residuals) groups[key_of(residual)].push_back(&residual);
  Table table;
  for (const auto& [key, rows] : groups) table.cells.push_back(cell_of(rows));
  return table;
}

}  // namespace shardscape::evidence
