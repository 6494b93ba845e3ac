#include "sweep/validate/error_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/enum_names.h"
#include "engine/base/suggest.h"
#include "engine/base/words.h"
#include "sweep/validate/run_labels.h"

namespace shardscape::validate {

tl::expected<std::vector<std::string>, std::string> parse_regime_keys(std::string_view text) {
  std::vector<std::string> keys;
  const std::span<const std::string_view> known = regime_keys();
  for (const std::string_view part : split(text, ',')) {
    const std::string key(part);
    if (std::ranges::find(known, key) == known.end())
      return tl::unexpected("'" + key + "' is no part of a regime" + did_you_mean(key, known) + "; one of " +
                            join_names(known));
    if (std::ranges::find(keys, key) != keys.end()) return tl::unexpected("'" + key + "' is given twice");
    keys.push_back(key);
  }
  return keys;
}

std::vector<ErrorGroup> error_groups(const Evaluation& evaluation, const std::vector<std::string>& keys) {
  std::vector<ErrorGroup> groups;
  for (const Metric& metric : evaluation.metrics) {
    std::map<std::vector<std::string>, std::vector<Pair>> pairs;
    for (const Pair& pair : metric.pairs) {
      std::vector<std::string> key;
      for (const std::string& name : keys) key.push_back(regime_part(evaluation.rows[pair.row].regime, name));
      pairs[std::move(key)].push_back(pair);
    }
    for (const auto& [key, list] : pairs) groups.push_back({key, metric.key, error_statistics(list)});
  }
  return groups;
}

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
