#include "sweep/study/overrides.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "sweep/space/axis_names.h"
#include "sweep/yaml/closest_names.h"

namespace shardscape::sweep {

namespace {

constexpr std::string_view kHardware = "hardware.";

/// The path of a setting of the machine ("stack.communication.call"), which `hardware:` takes; not where the study has
/// the stack in full.
bool is_of_machine(const yaml::Node& root, const std::string& key) {
  const yaml::Node* const stack = root.find("stack");
  return key.starts_with("device.") || key.starts_with("fabric.") ||
         (key.starts_with("stack.") && stack != nullptr && stack->is_scalar());
}

std::vector<std::string> split_key(const std::string& key) {
  if (key.starts_with(kHardware)) return {"hardware", key.substr(kHardware.size())};
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', start)) {
    parts.push_back(key.substr(start, dot - start));
    start = dot + 1;
  }
  parts.push_back(key.substr(start));
  return parts;
}

/// The value as a tree, all of whose nodes are located at `where`.
std::optional<yaml::Node> parse_value(const std::string& text, const yaml::Location& where,
                                      const std::string& key, yaml::Diagnostics& diagnostics) {
  yaml::Diagnostics problems;
  std::optional<yaml::Node> value = yaml::parse(text, *where.source, problems);
  for (const yaml::Diagnostic& problem : problems.list()) diagnostics.add(where, key, problem.message);
  if (value) yaml::relocate(*value, where);
  return value;
}

/// The axis with only the named variants; an unknown name is a problem and gives nothing.
std::optional<yaml::Node> choose_variants(const yaml::Node& axis, const yaml::Node& names,
                                          const std::string& key, yaml::Diagnostics& diagnostics) {
  yaml::Node chosen = yaml::Node::map();
  chosen.where = names.where;
  for (const yaml::Node& name : names.is_list() ? names.items : std::vector{names}) {
    if (const yaml::Node* const variant = axis.find(name.text)) {
      chosen.set(name.text, *variant);
      continue;
    }
    std::vector<std::string> known;
    for (const yaml::Entry& entry : axis.entries) known.push_back(entry.key);
    diagnostics.add(names.where, key,
                    "unknown variant \"" + name.text + '"' + yaml::suggestion(name.text, known, "variants"));
    return std::nullopt;
  }
  return chosen;
}

}  // namespace

void name_axes(yaml::Node& root, yaml::Diagnostics& diagnostics) {
  yaml::Node* const space = root.is_map() ? root.find("space") : nullptr;
  if (space == nullptr || !space->is_map()) return;
  for (yaml::Entry& entry : space->entries) {
    const PlanAxisRow* const axis = find_axis(entry.key);
    if (axis == nullptr || entry.key != axis->name || entry.key == axis->column) continue;
    if (space->find(axis->column) != nullptr)
      diagnostics.add(entry.value.where, "space." + entry.key,
                      std::string("is another name of space.") + axis->column + ", which is given, too");
    entry.key = axis->column;
  }
}

void apply_override(yaml::Node& root, const std::string& setting, yaml::Diagnostics& diagnostics) {
  const yaml::Location where{std::make_shared<const std::string>("--set " + setting), 0, 0};
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size()) {
    diagnostics.add(where, "", "must be KEY=VALUE, such as workload.global_batch=64");
    return;
  }
  std::string key = setting.substr(0, equals);
  if (is_of_machine(root, key)) key.insert(0, kHardware);
  std::optional<yaml::Node> value = parse_value(setting.substr(equals + 1), where, key, diagnostics);
  if (!value) return;
  name_axes(root, diagnostics);
  if (const PlanAxisRow* const axis = find_axis(key); axis != nullptr && key.starts_with("space."))
    key = std::string("space.") + axis->column;
  const std::vector<std::string> parts = split_key(key);
  if (std::ranges::any_of(parts, &std::string::empty)) {
    diagnostics.add(where, key, "has an empty part between its dots");
    return;
  }
  yaml::Node* node = &root;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (node->find(parts[i]) == nullptr) {
      yaml::Node child = yaml::Node::map();
      child.where = where;
      node->set(parts[i], std::move(child));
    }
    node = node->find(parts[i]);
    // A name becomes a map with that model as its base, so that a key can be changed.
    if (i == 0 && parts[0] == "model" && node->is_scalar()) {
      yaml::Node changed = yaml::Node::map();
      changed.where = node->where;
      changed.set("base", *node);
      *node = std::move(changed);
    }
    if (!node->is_map()) {
      diagnostics.add(where, key, parts[i] + " is no map in the study; set " + parts[i] + " itself");
      return;
    }
  }
  const yaml::Node* const old = node->find(parts.back());
  if (key.starts_with(kHardware) && old != nullptr && old->is_map() && !value->is_map()) {
    value = choose_variants(*old, *value, key, diagnostics);
    if (!value) return;
  }
  node->set(parts.back(), std::move(*value));
  name_axes(root, diagnostics);
}

}  // namespace shardscape::sweep
