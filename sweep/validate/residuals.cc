#include "sweep/validate/residuals.h"

#include <algorithm>
#include <set>

#include "engine/base/enum_names.h"
#include "sweep/validate/run_labels.h"

namespace shardscape::validate {

std::vector<evidence::Residual> residuals(const Evaluation& evaluation) {
  std::vector<evidence::Residual> list;
  if (evaluation.kind != TableKind::plans) return list;
  std::set<std::size_t> taken;
  for (const char* key : {"step_time", "itl", "e2e"}) {
    const auto metric = std::ranges::find(evaluation.metrics, key, &Metric::key);
    if (metric == evaluation.metrics.end()) continue;
    for (const Pair& pair : metric->pairs) {
      const EvaluatedRow& row = evaluation.rows[pair.row];
      const auto phase = parse_enum<Phase>(row.regime.phase);
      const auto precision = parse_enum<PolicyName>(row.regime.precision);
      // What a run of another server may have taken says nothing of predictions.
      const bool doubtful = row.regime.label == name_of(RunLabel::two_recipes);
      if (!phase || !precision || doubtful || !taken.insert(pair.row).second) continue;
      evidence::Residual& residual = list.emplace_back();
      residual.regime = {
          *phase,           row.regime.device, evidence::own_name(*precision), row.regime.model_kind,
          row.regime.stack, row.regime.gpus};
      residual.plan = row.kin;
      residual.degrees = row.degrees;
      residual.error = pair.error();
    }
  }
  return list;
}

}  // namespace shardscape::validate
