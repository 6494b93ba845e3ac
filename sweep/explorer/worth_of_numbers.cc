#include "sweep/explorer/worth_of_numbers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/simulate.h"
#include "sweep/explorer/field_list.h"
#include "sweep/study/system_changes.h"
#include "sweep/yaml/node.h"

namespace shardscape::explorer {

namespace {

/// The setting with one number changed, of which its part of the system alone is read again; nothing where the number
/// may not be so.
std::optional<Setting> with_number(const sweep::BaseSystem& base, const std::vector<yaml::Leaf>& leaves,
                                   std::string_view key, const std::string& text, Setting setting) {
  key.remove_prefix(std::string_view("hardware.").size());
  const auto leaf = std::ranges::find(leaves, key, &yaml::Leaf::path);
  if (leaf == leaves.end()) return std::nullopt;
  sweep::Change change;
  change.leaf = *leaf;
  change.shown = key;
  change.value = yaml::Node::scalar(text);
  yaml::relocate(change.value, {std::make_shared<const std::string>(key), 0, 0});
  const auto number = sweep::numeric_value(*leaf, change.value);
  if (!number) return std::nullopt;
  change.number = *number;
  const sweep::Change* const changes[] = {&change};
  yaml::Diagnostics problems;
  for (const sweep::Part part : sweep::kParts)
    if (change.touches(part) && !sweep::build_part(part, base, changes, setting.system, problems))
      return std::nullopt;
  return setting;
}

}  // namespace

double Worth::reach(double base) const {
  return std::max(std::abs(more.value_or(base) - base), std::abs(less.value_or(base) - base));
}

WorthOfNumbers worth_of_numbers(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                                SimulateOptions options, double share,
                                const std::function<bool(std::string_view)>& asked) {
  options.time_infeasible = true;
  if (options.mode == ExecutionMode::checked) options.mode = ExecutionMode::hierarchical;
  const auto seconds_of = [&](const Setting& changed) -> std::optional<double> {
    const Prediction prediction = Simulator(changed, options).run(plan);
    if (!prediction.has_times()) return std::nullopt;
    return prediction.whole(study.phase()).value();
  };
  WorthOfNumbers worths{seconds_of(setting), {}};
  if (!worths.base) return worths;
  const sweep::BaseSystem base = base_of(study, setting, plan);
  const std::vector<yaml::Leaf> leaves = sweep::changeable_leaves(base, nullptr);
  for (const nlohmann::ordered_json& group : hardware_fields(study, setting, plan))
    for (const nlohmann::ordered_json& field : group.at("fields")) {
      const auto& key = field.at("key").get_ref<const std::string&>();
      const bool has_unit = field.contains("worth") && field.at("value").get<double>() > 0;
      if (!has_unit || (asked && !asked(key))) continue;
      const nlohmann::ordered_json& unit = field.at("worth");
      const auto value = field.at("value").get<double>(), step = unit.at("unit_step").get<double>();
      const auto at = [&](double factor) -> std::optional<double> {
        const auto changed = with_number(base, leaves, key, field_text(field, value * factor), setting);
        return changed ? seconds_of(*changed) : std::nullopt;  // outside the range of the number
      };
      Worth worth{key, field.at("text"), unit.at("unit_text"), step < 0, at(1 + share), at(1 - share), {}};
      const double span = value * share * ((worth.more ? 1 : 0) + (worth.less ? 1 : 0));
      if (span > 0)
        worth.per_unit =
            (worth.more.value_or(*worths.base) - worth.less.value_or(*worths.base)) / span * step;
      worths.numbers.push_back(std::move(worth));
    }
  return worths;
}

}  // namespace shardscape::explorer
