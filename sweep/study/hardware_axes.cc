// Reads the axes of `hardware:`, checks that no two set the same thing and that every value alone gives a good system,
// and multiplies them out; parts of systems are built once per combination of the axes that touch them.
#include "sweep/study/hardware_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/spec/fabric_numbers.h"
#include "sweep/study/axis_values.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/specs.h"

namespace shardscape::sweep {

namespace {

using yaml::Leaf;

constexpr std::string_view kFloorplan = "technology.floorplan";

/// One value of an axis: the changes of a system that it stands for.
struct Value {
  yaml::Location where;
  std::vector<Change> changes;
};

struct Axis {
  HardwareAxis shown;
  yaml::Location where;
  bool variants = false;
  std::vector<Value> values;

  [[nodiscard]] bool touches(Part part) const {
    const auto change_does = [part](const Change& change) { return change.touches(part); };
    return std::ranges::any_of(
        values, [&](const Value& value) { return std::ranges::any_of(value.changes, change_does); });
  }
};

/// A combination as one index of a value per axis; kBase leaves the axis at the base system.
using Digits = std::vector<std::size_t>;
constexpr std::size_t kBase = std::numeric_limits<std::size_t>::max();

std::string with_spaces(std::string text) {
  for (char& c : text) {
    if (c == '.' || c == '_') c = ' ';
  }
  return text;
}

std::string identifier(std::string text) {
  for (char& c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return text;
}

std::string column_name(const Leaf& leaf) {
  std::string name = identifier(leaf.path);
  if (leaf.type == Leaf::Type::quantity) name += yaml::row_of(leaf.dimension).suffix;
  return name;
}

/// Whether a name is a Python identifier in lower case.
bool is_column_name(std::string_view name) {
  const auto small = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && small(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return small(c) || (c >= '0' && c <= '9'); });
}

bool has_effect(const Leaf& leaf) {
  return leaf.type != Leaf::Type::informational && leaf.type != Leaf::Type::text &&
         leaf.type != Leaf::Type::list;
}

std::string unknown_path(const std::vector<Leaf>& leaves, const std::string& key) {
  std::vector<std::string> all, siblings;
  const std::string group = key.substr(0, key.find('.') + 1);
  for (const Leaf& leaf : leaves) {
    if (!has_effect(leaf)) continue;
    all.push_back(leaf.path);
    if (!group.empty() && leaf.path.starts_with(group)) siblings.push_back(leaf.path);
  }
  // A key that stands in another group is meant rather than one that looks like it.
  const std::string path = group.empty() ? "" : yaml::same_key(key, all);
  if (!path.empty()) return "unknown path; did you mean \"" + path + "\"?";
  const bool near = nearest_name(key, all).has_value();
  return "unknown path" + yaml::suggestion(key, near || siblings.empty() ? all : siblings, "paths");
}

/// Describes a setting as an axis: numbers are in SI units, a choice has the codes of its names.
void describe_leaf(const Leaf& leaf, HardwareAxis& shown) {
  shown.column = column_name(leaf);
  shown.unit = leaf.type == Leaf::Type::quantity ? yaml::row_of(leaf.dimension).unit : "1";
  shown.choices = leaf.choices;
}

class HardwareParser {
 public:
  HardwareParser(const yaml::Node& node, const BaseSystem& base, const HardwareLimits& limits,
                 yaml::Loader& loader, yaml::Diagnostics& diagnostics)
      : node_(node),
        base_(base),
        limits_(limits),
        loader_(loader),
        diagnostics_(diagnostics),
        leaves_(changeable_leaves(base, nullptr)) {}

  ParsedHardware run() {
    const std::size_t before = diagnostics_.size();
    read_axes();
    if (diagnostics_.size() == before) check_conflicts();
    if (floorplans_ && !technology_) {
      problem(node_.where, std::string(kFloorplan), "has no effect: no technology is named");
    }
    if (diagnostics_.size() == before) check_values();
    ParsedHardware result;
    if (diagnostics_.size() == before) result.systems = multiply();
    if (diagnostics_.size() != before) result.systems.clear();
    if (diagnostics_.size() == before) result.resolved = resolved();
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
                       fmt::format("must be a map from paths to values, not {}", yaml::kind_name(node_)));
      return;
    }
    std::set<std::string> seen, columns;
    const yaml::Node* const plans = node_.find(kFloorplan);
    if (plans != nullptr && !read_floorplans(plans, *plans)) return;
    for (const yaml::Entry& entry : node_.entries) {
      if (&entry.value == plans) continue;
      if (!seen.insert(entry.key).second) {
        problem(entry.key_where, entry.key, "duplicate key");
        continue;
      }
      std::optional<Axis> axis = read_axis(entry);
      if (!axis) continue;
      axis->where = entry.key_where;
      axis->shown.path = entry.key;
      axis->shown.long_name = with_spaces(entry.key);
      if (!columns.insert(axis->shown.column).second) {
        problem(entry.key_where, entry.key,
                "its column " + axis->shown.column + " is that of another axis, too");
      }
      axes_.push_back(*std::move(axis));
    }
  }

  std::optional<Axis> read_axis(const yaml::Entry& entry) {
    if (is_reference(entry.key)) return read_parts(entry);
    const bool named = entry.key.find('.') == std::string::npos && entry.value.is_map();
    return named ? read_variants(entry) : read_path(entry);
  }

  /// Reads an axis of the values of one setting.
  std::optional<Axis> read_path(const yaml::Entry& entry) {
    const Leaf* leaf = find_leaf(leaves_, entry, entry.key);
    if (leaf == nullptr) return std::nullopt;
    Axis axis;
    describe_leaf(*leaf, axis.shown);
    for (const yaml::Node* item : axis_items({entry.value, "hardware." + entry.key, diagnostics_})) {
      std::optional<Change> change = read_setting(*leaf, entry.key, *item);
      if (!change) continue;
      axis.shown.labels.push_back(item->text);
      axis.shown.values.push_back(change->number);
      axis.values.push_back({item->where, {*std::move(change)}});
    }
    return axis;
  }

  /// Reads an axis of whole devices, clusters or stacks.
  std::optional<Axis> read_parts(const yaml::Entry& entry) {
    Axis axis;
    axis.shown.column = identifier(entry.key);
    axis.shown.unit = "1";
    for (const yaml::Node* item : axis_items({entry.value, "hardware." + entry.key, diagnostics_})) {
      std::optional<Change> change = read_whole(entry.key, entry.key, *item);
      if (!change) continue;
      const std::string name = change->name();
      if (add_choice(axis.shown, name)) {
        axis.values.push_back({item->where, {*std::move(change)}});
      } else {
        problem(item->where, entry.key, "two values are named " + name);
      }
    }
    return axis;
  }

  /// Reads an axis of named variants, each of several settings and parts together.
  std::optional<Axis> read_variants(const yaml::Entry& entry) {
    if (!is_column_name(entry.key)) {
      problem(entry.key_where, entry.key,
              "names a column, so it takes small letters, digits and _, and begins with a letter");
      return std::nullopt;
    }
    if (std::ranges::find(limits_.taken_columns, entry.key) != limits_.taken_columns.end()) {
      problem(entry.key_where, entry.key, "is the name of a column that every result has; choose another");
      return std::nullopt;
    }
    if (entry.value.entries.empty())
      problem(entry.value.where, entry.key, "an empty map; give a variant, such as base: {}");
    if (entry.value.entries.size() > kMostListed) {
      problem(entry.value.where, entry.key, fmt::format("more than {} variants", kMostListed));
      return std::nullopt;
    }
    Axis axis;
    axis.variants = true;
    axis.shown.column = entry.key;
    axis.shown.unit = "1";
    for (const yaml::Entry& variant : entry.value.entries) {
      if (!add_choice(axis.shown, variant.key)) {
        problem(variant.key_where, entry.key + '.' + variant.key, "duplicate key");
        continue;
      }
      axis.values.push_back({variant.key_where, read_variant(entry.key + '.' + variant.key, variant.value)});
    }
    return axis;
  }

  std::vector<Change> read_variant(const std::string& shown, const yaml::Node& node) {
    std::vector<Change> changes;
    if (!node.is_map()) {
      problem(node.where, shown,
              fmt::format("must be a map from paths to values ({{}} for the base), not {}",
                          yaml::kind_name(node)));
      return changes;
    }
    std::set<std::string> seen;
    // The cluster is read first, wherever it stands in the map, since it decides which paths exist.
    for (const yaml::Entry& entry : node.entries) {
      if (!seen.insert(entry.key).second) {
        problem(entry.key_where, shown + '.' + entry.key, "duplicate key");
      } else if (is_reference(entry.key)) {
        if (auto change = read_whole(entry.key, shown + '.' + entry.key, entry.value))
          changes.push_back(*std::move(change));
      }
    }
    const auto cluster = std::ranges::find_if(changes, [](const Change& c) { return c.cluster != nullptr; });
    const std::vector<Leaf> leaves =
        changeable_leaves(base_, cluster == changes.end() ? nullptr : cluster->cluster.get());
    for (const yaml::Entry& entry : node.entries) {
      if (is_reference(entry.key)) continue;
      const Leaf* leaf = find_leaf(leaves, entry, shown + '.' + entry.key);
      if (leaf == nullptr) continue;
      if (!leaf->replaces.empty() && seen.contains(leaf->replaces)) {
        problem(entry.key_where, shown + '.' + entry.key,
                "sets the same part as " + leaf->replaces + "; keep one of them");
      }
      if (auto change = read_setting(*leaf, shown + '.' + entry.key, entry.value))
        changes.push_back(*std::move(change));
    }
    return changes;
  }

  /// Adds a name to the choices of an axis; false where it is there already.
  static bool add_choice(HardwareAxis& shown, const std::string& name) {
    if (std::ranges::find(shown.choices, name) != shown.choices.end()) return false;
    shown.values.push_back(static_cast<double>(shown.choices.size()));
    shown.choices.push_back(name);
    shown.labels.push_back(name);
    return true;
  }

  const Leaf* find_leaf(const std::vector<Leaf>& leaves, const yaml::Entry& entry, const std::string& shown) {
    const auto leaf = std::ranges::find(leaves, entry.key, &Leaf::path);
    if (leaf == leaves.end()) {
      problem(entry.key_where, shown, diagnostics_.full() ? "" : unknown_path(leaves, entry.key));
    } else if (leaf->type == Leaf::Type::informational || leaf->type == Leaf::Type::text) {
      problem(entry.key_where, shown, "has no effect: it is informational, and no model reads it");
    } else if (leaf->type == Leaf::Type::list) {
      problem(entry.key_where, shown, "is a list as a whole; an axis takes settings of a single value");
    } else if (base_.phase == Phase::training && leaf->path.starts_with("stack.serving.")) {
      problem(entry.key_where, shown, "has no effect in training");
    } else {
      return &*leaf;
    }
    return nullptr;
  }

  std::optional<Change> read_setting(const Leaf& leaf, const std::string& shown, const yaml::Node& node) {
    const yaml::Parsed<double> value = numeric_value(leaf, node);
    if (!value) {
      problem(node.where, shown, value.error());
      return std::nullopt;
    }
    Change change;
    change.leaf = leaf;
    change.shown = shown;
    change.value = node;
    change.number = *value;
    if (leaf.path.starts_with(kTechnology) && !read_technology(change)) return std::nullopt;
    return change;
  }

  std::optional<Change> read_whole(const std::string& part, const std::string& shown,
                                   const yaml::Node& node) {
    Change change;
    change.leaf.path = part;
    change.shown = shown;
    change.value = node;
    const std::string path = "hardware." + shown;
    const auto keep = [](auto& slot, auto loaded) {
      if (loaded) slot = std::make_shared<typename decltype(loaded)::value_type>(*std::move(loaded));
    };
    if (part == "cluster") keep(change.cluster, loader_.cluster({node, path, base_.folder}));
    if (part == "device" || part == kPrefillDevice)
      keep(change.device, loader_.device({node, path, base_.folder}));
    if (part == "stack") keep(change.stack, loader_.stack({node, path, base_.folder}));
    if (part.starts_with(kTechnology)) read_technology(change);
    if (!change.whole()) return std::nullopt;
    return change;
  }

  bool read_floorplans(const yaml::Node* references, const yaml::Node& at) {
    const std::string path = fmt::format("hardware.{}", kFloorplan);
    auto plans = loader_.floorplans(references, at.where, path, base_.folder);
    if (plans) floorplans_ = std::make_shared<const std::vector<technology::Floorplan>>(*std::move(plans));
    return plans.has_value();
  }

  bool read_technology(Change& change) {
    const std::string path = "hardware." + change.shown;
    if (!floorplans_ && !read_floorplans(nullptr, change.value)) return false;
    technology_ = true;
    change.floorplans = floorplans_;
    const std::string_view key = std::string_view(change.leaf.path).substr(kTechnology.size());
    change.technology = loader_.technology_choice(key, {change.value, path, base_.folder});
    return change.technology.has_value();
  }

  /// Reports settings that two axes change, as one would undo the other.
  void check_conflicts() {
    std::map<std::string, std::size_t> owners;  // the axis that owns each path
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      for (const Value& value : axes_[a].values) {
        for (const Change& change : value.changes) check_conflict(owners, a, change);
      }
    }
  }

  void check_conflict(std::map<std::string, std::size_t>& owners, std::size_t a, const Change& change) {
    const std::string& path = change.leaf.path;
    const auto [own, fresh] = owners.emplace(path, a);
    if (own->second != a) {
      problem(axes_[a].where, change.shown, "is set by " + axes_[own->second].shown.path + ", too");
    }
    const auto other = owners.find(change.leaf.replaces);
    if (!change.leaf.replaces.empty() && other != owners.end() && other->second != a) {
      problem(axes_[a].where, change.shown,
              "sets the same part as " + change.leaf.replaces + "; keep one of them");
    }
  }

  /// Reports values that alone give a bad system, or the same system as another value of the axis.
  void check_values() {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const Axis& axis = axes_[a];
      std::map<std::string, std::size_t> texts;
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        Digits digits(axes_.size(), kBase);
        digits[a] = v;
        System system;
        std::string text;
        bool good = true;
        for (const Part part : kParts) {
          good = build(part, digits, system) && good;
          if (good && axis.touches(part)) text += part_text(part, system);
        }
        if (!good) continue;
        const auto [it, fresh] = texts.emplace(text, v);
        if (fresh) continue;
        const std::string inside = axis.variants ? '.' + axis.shown.labels[v] : std::string();
        problem(axis.values[v].where, axis.shown.path + inside,
                axis.shown.labels[v] + " gives the same system as " + axis.shown.labels[it->second]);
      }
    }
  }

  /// Builds one part of `system` for the given values of the axes.
  bool build(Part part, const Digits& digits, System& system) {
    std::vector<const Change*> changes;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (digits[a] == kBase) continue;
      for (const Change& change : axes_[a].values[digits[a]].changes) changes.push_back(&change);
    }
    return build_part(part, base_, changes, system, diagnostics_);
  }

  /// Builds the systems of all combinations. Each part is built once per combination of the axes that touch it.
  std::vector<System> multiply() {
    std::size_t count = 1;
    for (const Axis& axis : axes_) {
      count *= axis.values.size();
      if (count > limits_.systems) {
        diagnostics_.add(node_.where, "hardware",
                         "its lists and those of the workload multiply to more than the limit of settings");
        return {};
      }
    }
    std::vector<System> systems(count);
    for (const Part part : kParts) {
      std::vector<bool> touching;
      for (const Axis& axis : axes_) touching.push_back(axis.touches(part));
      std::map<Digits, std::size_t> built;
      for (std::size_t index = 0; index < count; ++index) {
        const Digits digits = digits_of(index, touching);
        const auto [it, fresh] = built.emplace(digits, index);
        if (fresh) {
          build(part, digits, systems[index]);
        } else {
          copy_part(part, systems[it->second], systems[index]);
        }
      }
    }
    return systems;
  }

  /// The digits of combination `index`; axes that do not touch the part stay at the base.
  [[nodiscard]] Digits digits_of(std::size_t index, const std::vector<bool>& touching) const {
    Digits digits(axes_.size(), kBase);
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const std::size_t digit = index % axes_[a].values.size();
      index /= axes_[a].values.size();
      if (touching[a]) digits[a] = digit;
    }
    return digits;
  }

  [[nodiscard]] yaml::Node resolved() const {
    yaml::Node node = yaml::Node::map();
    for (const Axis& axis : axes_) {
      yaml::Node values = axis.variants ? yaml::Node::map() : yaml::Node::list();
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        const std::vector<Change>& changes = axis.values[v].changes;
        if (axis.variants) {
          yaml::Node variant = yaml::Node::map();
          for (const Change& change : changes) variant.set(change.leaf.path, change.resolved());
          values.set(axis.shown.labels[v], std::move(variant));
        } else {
          values.flow = !changes.front().whole();
          values.items.push_back(changes.front().resolved());
        }
      }
      node.set(axis.shown.path, std::move(values));
    }
    if (technology_) {
      yaml::Node plans = yaml::Node::list();
      for (const technology::Floorplan& plan : *floorplans_) plans.items.push_back(yaml::write(plan));
      node.set(kFloorplan, std::move(plans));
    }
    return node;
  }

  const yaml::Node& node_;
  const BaseSystem& base_;
  const HardwareLimits& limits_;
  yaml::Loader& loader_;
  yaml::Diagnostics& diagnostics_;
  std::vector<Leaf> leaves_;
  std::shared_ptr<const std::vector<technology::Floorplan>> floorplans_;  ///< null until they are read
  /// Whether any axis names a technology.
  bool technology_ = false;
  std::vector<Axis> axes_;
};

/// The fabric as text without its name and rates.
std::string wiring_text(FabricSpec fabric) {
  fabric.name = "fabric";
  for (DimensionSpec& dimension : fabric.dimensions) {
    for (const DimensionNumber& number : dimension_numbers())
      if (number.rate()) number.set(dimension, 1);
    dimension.basis = BandwidthBasis::link;
    dimension.in_network_reduction = false;
    for (CustomSpec::Link& link : dimension.custom.links)
      for (const auto& number : custom_link_numbers()) number.set(link, 1);
  }
  return yaml::emit(yaml::write(fabric));
}

}  // namespace

ParsedHardware parse_hardware(const yaml::Node* node, const BaseSystem& base, const HardwareLimits& limits,
                              yaml::Loader& loader, yaml::Diagnostics& diagnostics) {
  if (node == nullptr) return {{}, {base.system}, {}};
  return HardwareParser(*node, base, limits, loader, diagnostics).run();
}

HardwareAxis gpus_axis(const std::vector<std::int64_t>& counts) {
  HardwareAxis axis;
  axis.path = axis.column = "gpus";
  axis.unit = "1";
  axis.long_name = "GPUs of the cluster";
  for (const std::int64_t count : counts) {
    axis.labels.push_back(std::to_string(count));
    axis.values.push_back(static_cast<double>(count));
  }
  return axis;
}

bool same_wiring(const FabricSpec& a, const FabricSpec& b) { return wiring_text(a) == wiring_text(b); }

}  // namespace shardscape::sweep
