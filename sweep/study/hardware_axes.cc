#include "sweep/study/hardware_axes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sweep/study/axis_values.h"
#include "sweep/yaml/specs.h"
#include "sweep/yaml/suggest.h"

namespace shardscape::sweep {

namespace {

using yaml::Leaf;

/// The part of a system that an axis moves.
enum class Part : std::uint8_t { device, fabric, stack };
constexpr std::array kParts = {Part::device, Part::fabric, Part::stack};

Part part_of(std::string_view path) {
  if (path.starts_with("device.")) return Part::device;
  return path.starts_with("fabric.") ? Part::fabric : Part::stack;
}

/// One axis with what it takes to apply it.
struct Axis {
  HardwareAxis shown;
  Leaf leaf;
  Part part = Part::device;
  std::vector<yaml::Node> values;
};

/// The digits of a combination, one per axis; kBase leaves the axis at the base system.
using Digits = std::vector<std::size_t>;
constexpr std::size_t kBase = std::numeric_limits<std::size_t>::max();

/// As the cluster's file has it.
const char* bandwidth_key(const DimensionSpec& dimension) {
  return dimension.basis == BandwidthBasis::gpu ? ".bandwidth_per_gpu" : ".bandwidth";
}

std::vector<Leaf> fabric_leaves(const FabricSpec& fabric) {
  std::vector<Leaf> leaves;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.kind == DimensionKind::custom) continue;  // its links have their own
    const std::string prefix = "fabric." + dimension.name;
    leaves.push_back(
        {prefix + bandwidth_key(dimension), Leaf::Type::quantity, yaml::Dimension::bandwidth, {}, {}});
    leaves.push_back({prefix + ".latency", Leaf::Type::quantity, yaml::Dimension::time, {}, {}});
  }
  return leaves;
}

std::vector<Leaf> all_leaves(const System& base) {
  std::vector<Leaf> leaves = yaml::device_leaves("device");
  for (std::vector<Leaf> more : {fabric_leaves(base.fabric), yaml::stack_leaves("stack")}) {
    leaves.insert(leaves.end(), more.begin(), more.end());
  }
  return leaves;
}

std::string column_name(const Leaf& leaf) {
  std::string name = leaf.path;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (leaf.type == Leaf::Type::quantity) name += yaml::dimension_suffix(leaf.dimension);
  return name;
}

/// A value in SI units, or the code of a choice.
yaml::Parsed<double> numeric_value(const Leaf& leaf, const yaml::Node& node) {
  constexpr std::int64_t kMax = std::int64_t{1} << 53;  // codes and counts are stored as doubles
  switch (leaf.type) {
    case Leaf::Type::quantity:
      return yaml::parse_quantity_node(node, leaf.dimension);
    case Leaf::Type::integer:
      return yaml::parse_integer_node(node, -kMax, kMax).map([](auto v) { return static_cast<double>(v); });
    case Leaf::Type::flag:
      return yaml::parse_flag(node).map([](bool v) { return v ? 1.0 : 0.0; });
    case Leaf::Type::choice: {
      const std::vector<std::string_view> names(leaf.choices.begin(), leaf.choices.end());
      return yaml::parse_choice(node, names).map([](std::size_t v) { return static_cast<double>(v); });
    }
    default:
      return yaml::parse_number_node(node);
  }
}

/// Sets `path` (without the part's own name) in a tree.
void patch(yaml::Node& tree, std::string_view path, const yaml::Node& value) {
  yaml::Node* node = &tree;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    const std::string_view key = path.substr(0, dot);
    if (node->find(key) == nullptr) node->set(key, yaml::Node::map());
    node = node->find(key);
    path.remove_prefix(dot + 1);
  }
  node->set(path, value);
}

void remove(yaml::Node& tree, std::string_view path) {
  yaml::Node* node = &tree;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos && node != nullptr;
       dot = path.find('.')) {
    node = node->find(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  if (node != nullptr) node->erase(path);
}

std::string_view inside_part(std::string_view path) { return path.substr(path.find('.') + 1); }

class HardwareParser {
 public:
  HardwareParser(const yaml::Node& node, const System& base, std::size_t max_systems,
                 yaml::Diagnostics& diagnostics)
      : node_(node),
        base_(base),
        max_systems_(max_systems),
        diagnostics_(diagnostics),
        device_tree_(yaml::write(base.device)),
        stack_tree_(yaml::write(base.stack)) {}

  ParsedHardware run() {
    const std::size_t before = diagnostics_.size();
    read_axes();
    if (diagnostics_.size() == before) check_values();
    ParsedHardware result;
    if (diagnostics_.size() == before) result.systems = multiply();
    if (diagnostics_.size() != before) result.systems.clear();
    for (Axis& axis : axes_) result.axes.push_back(std::move(axis.shown));
    return result;
  }

 private:
  void problem(const yaml::Location& where, const std::string& path, const std::string& message) {
    diagnostics_.add(where, "hardware." + path, message);
  }

  void read_axes() {
    if (!node_.is_map()) {
      diagnostics_.add(node_.where, "hardware",
                       "must be a map from paths to values, not " + std::string(yaml::kind_name(node_)));
      return;
    }
    const std::vector<Leaf> leaves = all_leaves(base_);
    std::set<std::string> seen, columns;
    for (const yaml::Entry& entry : node_.entries) {
      if (!seen.insert(entry.key).second) {
        problem(entry.key_where, entry.key, "duplicate key");
        continue;
      }
      const Leaf* leaf = find_leaf(leaves, entry);
      if (leaf == nullptr) continue;
      if (!leaf->replaces.empty() && seen.contains(leaf->replaces)) {
        problem(entry.key_where, entry.key, "sets the same part as " + leaf->replaces + "; keep one of them");
      }
      if (!columns.insert(column_name(*leaf)).second) {
        problem(entry.key_where, entry.key,
                "its column " + column_name(*leaf) + " is that of another axis, too");
      }
      read_axis(*leaf, entry.value);
    }
  }

  const Leaf* find_leaf(const std::vector<Leaf>& leaves, const yaml::Entry& entry) {
    const auto leaf = std::ranges::find(leaves, entry.key, &Leaf::path);
    if (leaf == leaves.end()) {
      problem(entry.key_where, entry.key, unknown_path(leaves, entry.key));
      return nullptr;
    }
    if (leaf->type == Leaf::Type::informational || leaf->type == Leaf::Type::text) {
      problem(entry.key_where, entry.key, "has no effect: it is informational, and no model reads it");
      return nullptr;
    }
    if (leaf->type == Leaf::Type::list) {
      problem(entry.key_where, entry.key, "is a list as a whole; an axis takes settings of a single value");
      return nullptr;
    }
    return &*leaf;
  }

  static std::string unknown_path(const std::vector<Leaf>& leaves, const std::string& key) {
    std::vector<std::string> all, siblings;
    const std::string group = key.substr(0, key.find('.') + 1);
    for (const Leaf& leaf : leaves) {
      if (leaf.type == Leaf::Type::informational || leaf.type == Leaf::Type::text ||
          leaf.type == Leaf::Type::list)
        continue;
      all.push_back(leaf.path);
      if (!group.empty() && leaf.path.starts_with(group)) siblings.push_back(leaf.path);
    }
    const bool near = !yaml::closest(key, all).empty();
    return "unknown path" + yaml::suggestion(key, near || siblings.empty() ? all : siblings, "paths");
  }

  void read_axis(const Leaf& leaf, const yaml::Node& node) {
    Axis axis;
    axis.leaf = leaf;
    axis.part = part_of(leaf.path);
    axis.shown.path = leaf.path;
    axis.shown.column = column_name(leaf);
    axis.shown.unit = leaf.type == Leaf::Type::quantity ? yaml::dimension_unit(leaf.dimension) : "1";
    axis.shown.long_name = long_name(leaf.path);
    axis.shown.choices = leaf.choices;
    for (const yaml::Node* item : axis_items({node, "hardware." + leaf.path, diagnostics_})) {
      const yaml::Parsed<double> value = numeric_value(leaf, *item);
      if (!value) {
        problem(item->where, leaf.path, value.error());
        continue;
      }
      axis.shown.labels.push_back(item->text);
      axis.shown.values.push_back(*value);
      axis.values.push_back(*item);
    }
    axes_.push_back(std::move(axis));
  }

  static std::string long_name(std::string text) {
    std::ranges::replace(text, '.', ' ');
    std::ranges::replace(text, '_', ' ');
    return text;
  }

  /// Every value alone must give a good system, and another one than its neighbours in the list.
  void check_values() {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      std::map<std::string, std::size_t> texts;
      for (std::size_t v = 0; v < axes_[a].values.size(); ++v) {
        Digits digits(axes_.size(), kBase);
        digits[a] = v;
        System system;
        if (!build(axes_[a].part, digits, system)) continue;
        const auto [it, fresh] = texts.emplace(text_of(axes_[a].part, system), v);
        if (fresh) continue;
        const Axis& axis = axes_[a];
        problem(axis.values[v].where, axis.leaf.path,
                axis.shown.labels[v] + " gives the same system as " + axis.shown.labels[it->second]);
      }
    }
  }

  static std::string text_of(Part part, const System& system) {
    switch (part) {
      case Part::device:
        return yaml::emit(yaml::write(system.device));
      case Part::fabric:
        return yaml::emit(yaml::write(system.fabric));
      case Part::stack:
        return yaml::emit(yaml::write(system.stack));
    }
    return {};
  }

  /// Fills one part of `system` for the given values of its axes.
  bool build(Part part, const Digits& digits, System& system) {
    yaml::Diagnostics problems;
    const bool good = part == Part::fabric ? build_fabric(digits, system, problems)
                                           : build_tree(part, digits, system, problems);
    if (!good) blame(part, digits, problems);
    return good;
  }

  bool build_tree(Part part, const Digits& digits, System& system, yaml::Diagnostics& problems) {
    yaml::Node tree = part == Part::device ? device_tree_ : stack_tree_;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].part != part || digits[a] == kBase) continue;
      const Leaf& leaf = axes_[a].leaf;
      if (!leaf.replaces.empty()) remove(tree, inside_part(leaf.replaces));
      patch(tree, inside_part(leaf.path), axes_[a].values[digits[a]]);
    }
    if (part == Part::device) {
      auto device = yaml::read_device(tree, "device", problems);
      if (device) system.device = std::move(*device);
      return device.has_value();
    }
    auto stack = yaml::read_stack(tree, "stack", problems);
    if (stack) system.stack = std::move(*stack);
    return stack.has_value();
  }

  bool build_fabric(const Digits& digits, System& system, yaml::Diagnostics& problems) {
    system.fabric = base_.fabric;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].part != Part::fabric || digits[a] == kBase) continue;
      const double value = axes_[a].shown.values[digits[a]];
      for (DimensionSpec& dimension : system.fabric.dimensions) {
        if (axes_[a].leaf.path == "fabric." + dimension.name + bandwidth_key(dimension))
          dimension.bandwidth = BytesPerSecond(value);
        if (axes_[a].leaf.path == "fabric." + dimension.name + ".latency") dimension.latency = Seconds(value);
      }
    }
    const Problems found = system.fabric.validate();
    for (const Problem& entry : found.list()) problems.add({}, "fabric." + entry.field, entry.message);
    return found.empty();
  }

  /// Problems of a patched part are those of the last axis that was patched in.
  void blame(Part part, const Digits& digits, const yaml::Diagnostics& problems) {
    for (std::size_t a = axes_.size(); a-- > 0;) {
      if (axes_[a].part != part || digits[a] == kBase) continue;
      const Axis& axis = axes_[a];
      for (const yaml::Diagnostic& found : problems.list()) {
        const bool elsewhere = part != Part::fabric && found.path != axis.leaf.path;
        problem(axis.values[digits[a]].where, axis.leaf.path,
                (elsewhere ? found.path + ": " : std::string()) + found.message);
      }
      return;
    }
  }

  /// The product of all axes. Each part is built once per combination of its own axes.
  std::vector<System> multiply() {
    std::size_t count = 1;
    for (const Axis& axis : axes_) {
      count *= axis.values.size();
      if (count > max_systems_) {
        diagnostics_.add(node_.where, "hardware",
                         "its lists and those of the workload multiply to more than the limit of settings");
        return {};
      }
    }
    std::vector<System> systems(count, base_);
    std::array<std::map<Digits, std::size_t>, kParts.size()> built;
    for (std::size_t index = 0; index < count; ++index) {
      for (const Part part : kParts) {
        const Digits digits = digits_of(index, part);
        const auto [it, fresh] = built[static_cast<std::size_t>(part)].emplace(digits, index);
        if (!fresh) {
          copy_part(part, systems[it->second], systems[index]);
        } else if (std::ranges::any_of(digits, [](std::size_t digit) { return digit != kBase; })) {
          build(part, digits, systems[index]);
        }
      }
    }
    return systems;
  }

  static void copy_part(Part part, const System& from, System& to) {
    if (part == Part::device) to.device = from.device;
    if (part == Part::fabric) to.fabric = from.fabric;
    if (part == Part::stack) to.stack = from.stack;
  }

  /// The digits of combination `index`, those of other parts left at the base.
  [[nodiscard]] Digits digits_of(std::size_t index, Part part) const {
    Digits digits(axes_.size(), kBase);
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const std::size_t digit = index % axes_[a].values.size();
      index /= axes_[a].values.size();
      if (axes_[a].part == part) digits[a] = digit;
    }
    return digits;
  }

  const yaml::Node& node_;
  const System& base_;
  std::size_t max_systems_;
  yaml::Diagnostics& diagnostics_;
  yaml::Node device_tree_, stack_tree_;
  std::vector<Axis> axes_;
};

}  // namespace

ParsedHardware parse_hardware(const yaml::Node* node, const System& base, std::size_t max_systems,
                              yaml::Diagnostics& diagnostics) {
  if (node == nullptr) return {{}, {base}};
  return HardwareParser(*node, base, max_systems, diagnostics).run();
}

}  // namespace shardscape::sweep
