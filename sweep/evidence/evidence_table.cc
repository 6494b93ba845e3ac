#include "sweep/evidence/evidence_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscape::evidence {

std::string model_kind(const ModelSpec& model) { return model.moe ? "mixture-of-experts" : "dense"; }

Degrees degrees_of(const ParallelPlan& plan) {
  return {plan.tensor, plan.context, plan.pipeline, plan.expert};
}

Degrees most_of(const Degrees& a, const Degrees& b) {
  return {std::max(a.tensor, b.tensor), std::max(a.context, b.context), std::max(a.pipeline, b.pipeline),
          std::max(a.expert, b.expert)};
}

Problems Table::validate() const {
  Problems problems;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const std::string at = fmt::format("regimes[{}].", i);
    problems.require(cell.gpus_low >= 1, at + "gpus_low", "must be at least 1");
    problems.require(cell.gpus_high >= cell.gpus_low, at + "gpus_high", "must be at least gpus_low");
    for (const std::int32_t most :
         {cell.most.tensor, cell.most.context, cell.most.pipeline, cell.most.expert})
      problems.require(most >= 1, at + "tensor_most, context_most, pipeline_most, expert_most",
                       "must be at least 1");
    problems.require(cell.rows >= 1, at + "rows", "must be at least 1");
    problems.require(cell.plans >= 1 && cell.plans <= cell.rows, at + "plans", "must be 1 to rows");
    problems.require(cell.bias > -1, at + "bias", "must be above -1");
    problems.require(cell.sigma > 0, at + "sigma", "must be above 0");
  }
  return problems;
}

}  // namespace shardscape::evidence
