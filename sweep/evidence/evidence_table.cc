#include "sweep/evidence/evidence_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscape::evidence {

std::string model_kind(const ModelSpec& model) { return model.moe ? "mixture-of-experts" : "dense"; }

Degrees degrees_of(const ParallelPlan& plan) {
  Degrees degrees;
  for (const PlanAxisRow& row : kPlanRows)
    if (has_evidence(row)) degrees[row.key] = row.get(plan);
  return degrees;
}

std::string most_key(const PlanAxisRow& row) {
  const std::string axis = row.column;
  return axis.substr(0, axis.rfind("_parallel")) + "_most";
}

Degrees most_of(const Degrees& a, const Degrees& b) {
  Degrees most;
  std::ranges::transform(a, b, most.begin(), [](std::int32_t x, std::int32_t y) { return std::max(x, y); });
  return most;
}

Problems Table::validate() const {
  Problems problems;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const std::string at = fmt::format("regimes[{}].", i);
    problems.require(cell.gpus_low >= 1, at + "gpus_low", "must be at least 1");
    problems.require(cell.gpus_high >= cell.gpus_low, at + "gpus_high", "must be at least gpus_low");
    for (const PlanAxisRow& row : kPlanRows)
      if (has_evidence(row))
        problems.require(cell.most[row.key] >= 1, at + most_key(row), "must be at least 1");
    problems.require(cell.rows >= 1, at + "rows", "must be at least 1");
    problems.require(cell.plans >= 1 && cell.plans <= cell.rows, at + "plans", "must be 1 to rows");
    problems.require(cell.bias > -1, at + "bias", "must be above -1");
    problems.require(cell.sigma > 0, at + "sigma", "must be above 0");
  }
  return problems;
}

}  // namespace shardscape::evidence
