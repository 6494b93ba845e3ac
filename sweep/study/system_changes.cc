// Applies changes to a system part by part: chooses the whole part to start from, rebuilds devices in other
// technologies, patches single settings in the part's YAML, and reads the result strictly.
#include "sweep/study/system_changes.h"

#include <fmt/format.h>

#include <utility>

#include "engine/spec/fabric_numbers.h"
#include "sweep/yaml/specs.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

namespace {

using yaml::Leaf;

constexpr std::string_view kFabric = "fabric.";
constexpr std::string_view kSize = "size";
// A size of 0 would mean `fill` to a FabricTemplate.
constexpr std::int64_t kMostRanks = std::int64_t{1} << 30;

std::string fabric_path(const DimensionSpec& dimension, std::string_view key) {
  return fmt::format("{}{}.{}", kFabric, dimension.name, key);
}

/// Whether the size of a dimension is one number that a file gives.
bool has_size(const DimensionSpec& dimension) {
  return !dimension.shaped() && dimension.kind != DimensionKind::custom &&
         dimension.shape.front() != FabricTemplate::kFill;
}

void add_fabric_leaves(const FabricTemplate& fabric, std::vector<Leaf>& leaves) {
  for (const DimensionSpec& dimension : fabric.fabric.dimensions) {
    if (has_size(dimension))
      leaves.push_back({fabric_path(dimension, kSize), Leaf::Type::integer, {}, {}, {}, 1, kMostRanks});
    for (const DimensionNumber& number : dimension_numbers()) {
      if (!number.rate() || !number.no_effect(dimension).empty()) continue;
      leaves.push_back({fabric_path(dimension, number.key(dimension)),
                        Leaf::Type::quantity,
                        number.range.unit == "s" ? yaml::Dimension::time : yaml::Dimension::bandwidth,
                        {},
                        {}});
    }
  }
}

/// Sets the value at `path` (without the part's own name) in a tree.
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

/// Sets all single settings of the changes in a tree.
void patch_all(yaml::Node& tree, std::span<const Change* const> changes) {
  for (const Change* change : changes) {
    if (change->whole()) continue;
    if (!change->leaf.replaces.empty()) remove(tree, inside_part(change->leaf.replaces));
    patch(tree, inside_part(change->leaf.path), change->value);
  }
}

/// The device rebuilt in the technologies of the changes.
std::optional<DeviceSpec> rebuild(const DeviceSpec& device, std::span<const Change* const> changes,
                                  yaml::Diagnostics& problems) {
  technology::Choice choice;
  const std::vector<technology::Floorplan>* floorplans = nullptr;
  for (const Change* change : changes) {
    if (!change->technology) continue;
    choice.merge(*change->technology);
    floorplans = change->floorplans.get();
  }
  if (floorplans == nullptr) return device;
  auto built = yaml::build_device(device, *floorplans, choice);
  if (built) return std::move(built->device);
  for (const Problem& problem : built.error().list())
    problems.add({}, std::string(kTechnology) + problem.field, problem.message);
  return std::nullopt;
}

bool build_device(const BaseSystem& base, std::span<const Change* const> changes, System& system,
                  yaml::Diagnostics& problems) {
  const DeviceSpec* start = &base.system.device;
  bool own = false;  // a change of the device overrides the device of a changed cluster
  for (const Change* change : changes) {
    if (change->cluster && !own) start = &change->cluster->device;
    if (change->device) start = change->device.get(), own = true;
  }
  const std::optional<DeviceSpec> rebuilt = rebuild(*start, changes, problems);
  if (!rebuilt) return false;
  yaml::Node tree = yaml::write(*rebuilt);
  patch_all(tree, changes);
  auto device = yaml::read_device(tree, "device", problems);
  if (device) system.device = std::move(*device);
  return device.has_value();
}

bool build_stack(const BaseSystem& base, std::span<const Change* const> changes, System& system,
                 yaml::Diagnostics& problems) {
  const StackProfile* start = &base.system.stack;
  for (const Change* change : changes) {
    if (change->stack) start = change->stack.get();
  }
  yaml::Node tree = yaml::write(*start);
  patch_all(tree, changes);
  auto stack = yaml::read_stack(tree, "stack", problems);
  if (stack) system.stack = std::move(*stack);
  return stack.has_value();
}

/// Applies a setting to each dimension that its path names; true where there is one.
bool apply_to_fabric(const Change& change, FabricSpec& fabric) {
  bool found = false;
  for (DimensionSpec& dimension : fabric.dimensions) {
    const std::string& path = change.leaf.path;
    for (const DimensionNumber& number : dimension_numbers()) {
      if (path != fabric_path(dimension, number.key(dimension))) continue;
      number.set(dimension, change.number);
      found = true;
    }
    if (path == fabric_path(dimension, kSize)) {
      dimension.shape = {static_cast<std::int64_t>(change.number)};
      found = true;
    }
  }
  return found;
}

/// Gives every GPU the network's bandwidth in the scale-out dimensions; false where there are none.
bool apply_network(const technology::NetworkTechnology& network, FabricSpec& fabric) {
  bool found = false;
  for (DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.scope != LinkScope::scale_out || dimension.kind == DimensionKind::custom) continue;
    dimension.bandwidth = network.bandwidth;
    dimension.basis = BandwidthBasis::gpu;
    found = true;
  }
  return found;
}

bool is_size(const Change& change) {
  return !change.whole() && change.leaf.path.ends_with(fmt::format(".{}", kSize));
}

bool build_fabric(const BaseSystem& base, std::span<const Change* const> changes, System& system,
                  yaml::Diagnostics& problems) {
  FabricTemplate fabric = base.fabric;
  bool wiring = false;
  const auto apply = [&](const Change& change, FabricSpec& to) {
    if (!apply_to_fabric(change, to))
      problems.add({}, change.leaf.path, "cluster " + to.name + " has no such setting for these GPUs");
  };
  for (const Change* change : changes) {
    if (change->cluster) fabric = change->cluster->fabric, wiring = true;
  }
  for (const Change* change : changes) {
    if (is_size(*change)) apply(*change, fabric.fabric), wiring = true;
  }
  Problems found;
  if (wiring && base.gpus) {
    system.fabric = fabric.instantiate(*base.gpus, found);
  } else {
    system.fabric = wiring ? fabric.fabric : base.system.fabric;
  }
  for (const Change* change : changes) {
    if (change->technology && !apply_network(*change->technology->network, system.fabric))
      problems.add({}, change->leaf.path, "cluster " + system.fabric.name + " has no scale_out dimension");
    if (!change->whole() && !is_size(*change)) apply(*change, system.fabric);
  }
  const bool alone = base.gpus == 1 && system.fabric.dimensions.empty();  // a GPU without links
  const Problems rules = found.empty() && !alone ? system.fabric.validate() : std::move(found);
  for (const Problem& entry : rules.list()) {
    problems.add({}, entry.field == "gpus" ? "gpus" : std::string(kFabric) + entry.field, entry.message);
  }
  return problems.empty();
}

}  // namespace

bool is_reference(std::string_view path) {
  return path == "cluster" || path == "device" || path == "stack" || path == kPrefillDevice ||
         path == "technology.logic" || path == "technology.memory" || path == "technology.network";
}

bool Change::touches(Part part) const {
  switch (part) {
    case Part::device:
      return cluster || leaf.path == "device" || technology || leaf.path.starts_with("device.");
    case Part::fabric:
      return cluster || (technology && technology->network) || leaf.path.starts_with(kFabric);
    case Part::stack:
      return stack || leaf.path.starts_with("stack.");
    case Part::prefill_device:
      return leaf.path == kPrefillDevice;
  }
  return false;
}

std::string Change::name() const {
  if (cluster) return cluster->name;
  if (technology && technology->logic) return technology->logic->name;
  if (technology && technology->memory) return technology->memory->name;
  if (technology && technology->network) return technology->network->name;
  return device ? device->name : stack->name;
}

yaml::Node Change::resolved() const {
  if (device) return yaml::write(*device);
  if (stack) return yaml::write(*stack);
  if (technology && technology->logic) return yaml::write(*technology->logic);
  if (technology && technology->memory) return yaml::write(*technology->memory);
  if (technology && technology->network) return yaml::write(*technology->network);
  return cluster ? yaml::write(*cluster) : value;
}

std::vector<Leaf> changeable_leaves(const BaseSystem& base, const yaml::Cluster* cluster) {
  std::vector<Leaf> leaves = yaml::device_leaves("device");
  add_fabric_leaves(cluster != nullptr ? cluster->fabric : base.fabric, leaves);
  for (const char* reference : {"technology.logic", "technology.memory", "technology.network"})
    leaves.push_back({reference, Leaf::Type::choice, {}, {}, {}});
  leaves.push_back({"technology.area", Leaf::Type::quantity, yaml::Dimension::area, {}, {}});
  leaves.push_back({"technology.power", Leaf::Type::quantity, yaml::Dimension::power, {}, {}});
  const std::vector<Leaf> stack = yaml::stack_leaves("stack");
  leaves.insert(leaves.end(), stack.begin(), stack.end());
  return leaves;
}

yaml::Parsed<double> numeric_value(const Leaf& leaf, const yaml::Node& node) {
  switch (leaf.type) {
    case Leaf::Type::quantity:
      return yaml::parse_quantity_node(node, leaf.dimension);
    case Leaf::Type::integer:
      return yaml::parse_integer_node(node, leaf.low, leaf.high).map([](auto v) {
        return static_cast<double>(v);
      });
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

bool build_part(Part part, const BaseSystem& base, std::span<const Change* const> changes, System& system,
                yaml::Diagnostics& diagnostics) {
  std::vector<const Change*> touching;
  for (const Change* change : changes) {
    if (change->touches(part)) touching.push_back(change);
  }
  if (touching.empty()) {
    copy_part(part, base.system, system);
    return true;
  }
  yaml::Diagnostics problems;
  if (part == Part::prefill_device) {
    system.prefill_device = *touching.back()->device;
    return true;
  }
  const bool good = part == Part::device   ? build_device(base, touching, system, problems)
                    : part == Part::fabric ? build_fabric(base, touching, system, problems)
                                           : build_stack(base, touching, system, problems);
  const Change& last = *touching.back();
  for (const yaml::Diagnostic& found : problems.list()) {
    const bool elsewhere = found.path != last.leaf.path && part != Part::fabric;
    diagnostics.add(last.value.where, "hardware." + last.shown,
                    (elsewhere ? found.path + ": " : std::string()) + found.message);
  }
  return good;
}

std::string part_text(Part part, const System& system) {
  switch (part) {
    case Part::device:
      return yaml::emit(yaml::write(system.device));
    case Part::fabric:
      return yaml::emit(yaml::write(system.fabric));
    case Part::stack:
      return yaml::emit(yaml::write(system.stack));
    case Part::prefill_device:
      return system.prefill_device ? yaml::emit(yaml::write(*system.prefill_device)) : "";
  }
  return {};
}

void copy_part(Part part, const System& from, System& to) {
  if (part == Part::device) to.device = from.device;
  if (part == Part::fabric) to.fabric = from.fabric;
  if (part == Part::stack) to.stack = from.stack;
  if (part == Part::prefill_device) to.prefill_device = from.prefill_device;
}

}  // namespace shardscape::sweep
