#include "sweep/study/placement_axis.h"

#include <utility>

#include "sweep/study/axis_values.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

namespace {

constexpr const char* kKey = "placement";

}  // namespace

PlacementChoice placement_of(const Study& study, std::size_t system) {
  if (study.hardware.empty() || study.hardware.back().path != kKey) return PlacementChoice::plain;
  const HardwareAxis& axis = study.hardware.back();  // the last axis, whose index varies fastest
  return static_cast<PlacementChoice>(axis.values[system % axis.values.size()]);
}

void add_placement_axis(const yaml::Node& node, std::size_t max_systems, Study& study,
                        yaml::Diagnostics& diagnostics) {
  const std::vector<PlacementChoice> choices =
      parse_axis<PlacementChoice>({node, kKey, diagnostics}, yaml::parse_value<PlacementChoice>);
  if (choices.empty()) return;
  if (study.systems.size() * choices.size() > max_systems) {
    return diagnostics.add(node.where, kKey, "its values and the other lists multiply to too many settings");
  }
  HardwareAxis axis;
  axis.path = axis.column = kKey;
  axis.unit = "1";
  axis.long_name = "where the ranks of the plan lie on the fabric";
  for (const std::string_view name : enum_names<PlacementChoice>()) axis.choices.emplace_back(name);
  for (const PlacementChoice choice : choices) {
    axis.labels.emplace_back(name_of(choice));
    axis.values.push_back(static_cast<double>(choice));
  }
  study.hardware.push_back(std::move(axis));
  std::vector<System> systems;
  for (const System& system : study.systems) systems.insert(systems.end(), choices.size(), system);
  study.systems = std::move(systems);
}

std::optional<yaml::Node> write_placement(const Study& study) {
  if (study.hardware.empty() || study.hardware.back().path != kKey) return std::nullopt;
  return yaml::flow_list(study.hardware.back().labels);
}

}  // namespace shardscape::sweep
