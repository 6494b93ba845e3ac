#include "sweep/validate/error_groups.h"

#include <algorithm>
#include <map>

#include "engine/base/suggest.h"
#include "engine/base/words.h"

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

}  // namespace shardscape::validate
