// Walks the numbers of device, fabric, stack and workload with the tables that describe them, looks up each one's
// value in the study's tree, and adds unit, range, meaning and the step by which its worth is told.
#include "sweep/explorer/field_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/spec/fabric_numbers.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/spec_numbers.h"
#include "sweep/study/system_changes.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/specs.h"

namespace shardscape::explorer {

namespace {

using Json = nlohmann::ordered_json;
using yaml::Leaf;

/// One more unit of a number, as a reader thinks of it; less than 0: one less.
struct Unit {
  yaml::Dimension dimension;
  double step, parts = 1;  ///< step / parts in base units
};
constexpr std::array<Unit, 6> kUnits = {{{yaml::Dimension::bandwidth, 1e9},
                                         {yaml::Dimension::data, 1e9},
                                         {yaml::Dimension::work_rate, 1e12},
                                         {yaml::Dimension::time, -1, 1e6},
                                         {yaml::Dimension::frequency, 1e6},
                                         {yaml::Dimension::power, 1}}};

/// The step whose worth is told: of the unit, its tenth, hundredth, ... the largest that is at most a tenth of the
/// number, as worths are straight lines through small changes. `per_unit`: base units in one of the number's.
Json worth_step(Unit unit, double value, double per_unit = 1) {
  constexpr double kMostShare = 0.1 * (1 + 1e-9);
  while (value > 0 && std::abs(unit.step) > kMostShare * value * per_unit * unit.parts) unit.parts *= 10;
  const double step = unit.step / unit.parts;
  return {
      {"unit_step", step / per_unit},
      {"unit_text", yaml::format_quantity(std::abs(step), unit.dimension) + (step < 0 ? " less" : " more")}};
}

std::string label_of(std::string_view path) {
  std::string text(path);
  std::ranges::replace(text, '.', ' ');
  std::ranges::replace(text, '_', ' ');
  return text;
}

/// The node at a dotted path of a tree; null where there is none.
const yaml::Node* node_at(const yaml::Node& tree, std::string_view path) {
  const yaml::Node* node = &tree;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

/// The dimensions of a fabric by their names.
yaml::Node fabric_tree(const FabricSpec& fabric) {
  yaml::Node tree = yaml::Node::map();
  const yaml::Node written = yaml::write(fabric);
  if (const yaml::Node* const dimensions = written.find("dimensions"))
    for (const yaml::Node& dimension : dimensions->items) tree.set(dimension.find("name")->text, dimension);
  return tree;
}

template <class Rows>
void describe(const Rows& rows, std::string_view path, Json& field) {
  const auto row =
      std::ranges::find_if(rows, [&](const auto& one) { return one.path == path || one.total == path; });
  if (row == std::ranges::end(rows)) return;
  field["meaning"] = row->meaning;
  if (row->path != path || row->range.high <= row->range.low) return;
  field["low"] = row->range.low;
  field["high"] = row->range.high;
}

void describe(std::string_view part, std::string_view path, Json& field) {
  if (part == "device") return describe(device_numbers(), path, field);
  if (part == "stack") return describe(stack_numbers(), path, field);
  const std::size_t dot = path.find('.');
  if (dot != std::string_view::npos) describe(dimension_numbers(), path.substr(dot + 1), field);
}

/// The field of a setting at its value in a tree; nothing where the tree has none, or it is no number and no choice.
std::optional<Json> field_of(const Leaf& leaf, std::string_view path, const yaml::Node& tree) {
  const yaml::Node* const node = node_at(tree, path);
  if (node == nullptr || !node->is_scalar()) return std::nullopt;
  Json field = {{"key", "hardware." + leaf.path}, {"label", label_of(path)}};
  if (leaf.type == Leaf::Type::choice || leaf.type == Leaf::Type::flag) {
    field["kind"] = leaf.type == Leaf::Type::flag ? "flag" : "choice";
    field["value"] = field["text"] = node->text;
    field["choices"] = leaf.choices;
    return field;
  }
  const auto value = sweep::numeric_value(leaf, *node);
  if (!value) return std::nullopt;
  const bool quantity = leaf.type == Leaf::Type::quantity;
  field["kind"] = leaf.type == Leaf::Type::integer ? "integer" : "number";
  field["value"] = *value;
  field["text"] = node->text;
  field["unit"] = quantity ? yaml::row_of(leaf.dimension).unit : "1";
  if (!quantity) return field;
  for (const Unit& unit : kUnits)
    if (unit.dimension == leaf.dimension) field["worth"] = worth_step(unit, *value);
  return field;
}

/// The rate of the matrix units at the precision in use, counted per clock in files, has a unit that readers know.
void give_peak_its_unit(const Setting& setting, Json& field) {
  const DeviceSpec& device = setting.system.device;
  const Precision precision = setting.policy().products;
  if (field["key"] != fmt::format("hardware.device.sm.tensor_flops_per_clock.{}", name_of(precision))) return;
  const double per_unit = static_cast<double>(device.sm.count) * device.sm.clock.value();
  if (per_unit > 0) field["worth"] = worth_step({yaml::Dimension::work_rate, 1e12}, field["value"], per_unit);
}

Json workload_fields(const yaml::Node& workload) {
  Json fields = Json::array();
  for (const yaml::Entry& entry : workload.entries) {
    // Of several values the first is that of the first setting, which a page begins with.
    const bool listed = !entry.value.items.empty();
    const yaml::Node& node = listed ? entry.value.items.front() : entry.value;
    if (!node.is_scalar() || entry.key == "phase") continue;
    Json field = {{"key", "workload." + entry.key}, {"label", label_of(entry.key)}};
    field["text"] = node.text;
    const auto number = yaml::parse_finite(node.text);
    field["kind"] = number ? "integer" : "choice";
    field["value"] = number ? Json(*number) : Json(node.text);
    field["unit"] = "1";
    if (entry.key == "precision") field["choices"] = enum_names<PolicyName>();
    fields.push_back(std::move(field));
  }
  return fields;
}

Json plan_fields(const sweep::Study& study, const ParallelPlan& plan) {
  Json list = Json::array();
  for (const sweep::NamedAxis& axis : sweep::named_axes(study.space, study.phase())) {
    const PlanAxisRow& row = axis.row;
    const auto text = [&](std::int32_t code) -> Json {
      const std::string written = sweep::study_text(row, code);
      const auto number = yaml::parse_finite(written);
      return number ? Json(static_cast<std::int64_t>(*number)) : Json(written);
    };
    Json field = {{"name", row.name}, {"meaning", row.meaning}, {"kind", name_of(row.kind)}};
    field["value"] = text(row.get(plan));
    field["fill"] = axis.list.fill;
    field["values"] = Json::array();
    for (const std::int32_t code : axis.list.values) field["values"].push_back(text(code));
    list.push_back(std::move(field));
  }
  return list;
}

}  // namespace

std::string field_text(const Json& field, double value) {
  if (field.at("kind") == "integer") return fmt::format("{:.0f}", value);
  for (const Unit& unit : kUnits)
    if (field.at("unit") == yaml::row_of(unit.dimension).unit)
      return yaml::format_quantity(value, unit.dimension);
  return yaml::format_number(value);
}

sweep::BaseSystem base_of(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
  return {setting.system, {setting.system.fabric}, plan.gpus(), study.phase(), {}};
}

Json hardware_fields(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan) {
  const System& system = setting.system;
  const sweep::BaseSystem base = base_of(study, setting, plan);
  const std::array<std::pair<std::string_view, yaml::Node>, 3> trees = {
      {{"device", yaml::write(system.device)},
       {"fabric", fabric_tree(system.fabric)},
       {"stack", yaml::write(system.stack)}}};
  Json groups = Json::array();
  for (const auto& [part, tree] : trees) {
    Json fields = Json::array();
    for (const Leaf& leaf : sweep::changeable_leaves(base, nullptr)) {
      const std::size_t dot = leaf.path.find('.');
      if (dot == std::string::npos || std::string_view(leaf.path).substr(0, dot) != part) continue;
      const std::string_view path = std::string_view(leaf.path).substr(dot + 1);
      // How many there are of a dimension follows from the cluster, which the page has written out, and the GPUs.
      if (part == "fabric" && path.ends_with(".size")) continue;
      auto field = field_of(leaf, path, tree);
      if (!field) continue;
      describe(part, path, *field);
      if (part == "device") give_peak_its_unit(setting, *field);
      fields.push_back(*std::move(field));
    }
    groups.push_back({{"name", part}, {"fields", std::move(fields)}});
  }
  return groups;
}

Json fields_json(const sweep::Study& study, const yaml::Node& workload, const Setting& setting,
                 const ParallelPlan& plan) {
  Json groups = hardware_fields(study, setting, plan);
  groups.push_back({{"name", "workload"}, {"fields", workload_fields(workload)}});
  return {{"groups", std::move(groups)}, {"plan", plan_fields(study, plan)}};
}

}  // namespace shardscape::explorer
