// Follows references to files and reads the specs behind them: whole files, maps over a `base`, models with changed
// keys, and devices rebuilt in other technologies. Notes every file that is read.
#include "sweep/yaml/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/base/words.h"
#include "engine/spec/ranges.h"
#include "sweep/input/input_file.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/huggingface.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/specs.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

namespace fs = std::filesystem;

namespace {

/// The name of a Hugging Face model: its folder's, since every config is called config.json.
std::string huggingface_name(const fs::path& file) {
  const fs::path absolute = fs::absolute(file);
  return file.stem() == "config" ? absolute.parent_path().filename().string() : file.stem().string();
}

Node reference_to(std::string_view name) {
  Node node = Node::scalar(std::string(name));
  node.where.source = std::make_shared<const std::string>();
  return node;
}

/// The preset whose layers, width, experts and further sizes that the config has are nearest, as factors.
std::string nearest_model(const Catalog& catalog, const HuggingFaceShape& shape) {
  std::string nearest;
  double least = HUGE_VAL;
  for (const Catalog::Entry& entry : catalog.list(PresetKind::model)) {
    const auto model = load_model(catalog, entry.name);
    if (!model) continue;
    const double experts = model->moe ? static_cast<double>(model->moe->experts) : 0;
    const auto apart = [](double a, auto b) {
      return std::abs(std::log((a + 1) / (static_cast<double>(b) + 1)));
    };
    const auto known = [&](double a, auto b) { return a > 0 ? apart(a, b) : 0; };
    const double distance =
        apart(shape.layers, model->layers) + apart(shape.hidden, model->hidden) +
        apart(shape.experts, experts) + known(shape.kv_heads, model->kv_heads) +
        known(shape.ffn_hidden, model->moe ? model->moe->expert_ffn_hidden : model->ffn_hidden) +
        known(shape.vocabulary, model->vocabulary);
    if (distance < least) nearest = entry.name;
    least = std::min(least, distance);
  }
  return nearest;
}

/// Adds entries and removes old ones with the same keys.
void replace_keys(std::vector<Entry>& entries, const std::vector<Entry>& changed) {
  std::erase_if(entries, [&](const Entry& old) {
    return std::ranges::find(changed, old.key, &Entry::key) != changed.end();
  });
  entries.insert(entries.end(), changed.begin(), changed.end());
}

/// Removes the widths of experts from `node` that follow from widths which `changed` changes.
void forget_what_follows(const MixtureOfExperts& moe, const Node& changed, bool new_width, Node& node) {
  const bool follows = moe.shared_ffn_hidden == moe.shared_experts * moe.expert_ffn_hidden;
  if (follows && changed.find("shared_ffn_hidden") == nullptr) node.find("moe")->erase("shared_ffn_hidden");
  if (changed.find("expert_ffn_hidden") != nullptr && moe.everywhere() && !new_width)
    node.erase("ffn_hidden");
}

/// Loads the spec behind a name or a path through a member function of a Loader.
template <class Spec>
Loaded<Spec> load(const Catalog& catalog, std::string_view name, const fs::path& relative_to,
                  std::optional<Spec> (Loader::*read)(const Reference&)) {
  Diagnostics diagnostics;
  Loader loader(catalog, diagnostics);
  std::optional<Spec> spec = (loader.*read)({reference_to(name), "", relative_to});
  if (!diagnostics.empty() || !spec) return refused(std::move(diagnostics));
  return std::move(*spec);
}

}  // namespace

tl::expected<std::string, std::string> read_text(const fs::path& file) {
  return input::read_file(file, input::kMostStudyBytes, "a study, a preset or a config");
}

std::optional<std::string> Loader::text_of(PresetKind kind, const fs::path& file, const Reference& at) {
  tl::expected<std::string, std::string> text = read_text(file);
  if (!text) {
    diagnostics_.add(at.node.where, at.path, file.string() + ": " + text.error());
    return std::nullopt;
  }
  InputFile input{fmt::format("{}/{}", preset_folder(kind), file.filename().string()), *text, file};
  if (std::ranges::find(files_, input) == files_.end()) files_.push_back(std::move(input));
  return std::move(*text);
}

std::optional<Loader::Target> Loader::follow(PresetKind kind, const Reference& at) {
  if (at.node.is_map()) return Target{at.node, at.path, at.folder};
  if (!at.node.is_scalar()) {
    diagnostics_.add(at.node.where, at.path,
                     fmt::format("must be the name or the path of a {}, or one written in full, not {}",
                                 name_of(kind), kind_name(at.node)));
    return std::nullopt;
  }
  const tl::expected<fs::path, std::string> file = catalog_.find(kind, at.node.text, at.folder);
  if (!file) {
    diagnostics_.add(at.node.where, at.path, file.error());
    return std::nullopt;
  }
  const std::optional<std::string> text = text_of(kind, *file, at);
  if (!text) return std::nullopt;
  std::optional<Node> node = parse(*text, file->string(), diagnostics_);
  if (!node) return std::nullopt;
  return Target{std::move(*node), "", file->parent_path()};
}

bool Loader::enter(const Reference& at, const Target& target) {
  if (!at.node.is_scalar()) return true;  // written in place: there is no file that it could lead back to
  std::error_code error;
  const fs::path written(*target.node.where.source);
  const fs::path canonical = fs::weakly_canonical(written, error);
  const fs::path& file = error ? written : canonical;
  if (std::ranges::find(chain_, file) != chain_.end()) {
    diagnostics_.add(at.node.where, at.path, "goes in a circle: the chain comes back to " + written.string());
    return false;
  }
  if (chain_.size() == kLongestChain) {
    diagnostics_.add(at.node.where, at.path,
                     fmt::format("is file {} of a chain in which each rests on the next; {} may",
                                 kLongestChain + 1, kLongestChain));
    return false;
  }
  chain_.push_back(file);
  return true;
}

void Loader::leave(const Reference& at) {
  if (at.node.is_scalar()) chain_.pop_back();
}

std::optional<ModelSpec> Loader::model(const Reference& at) {
  if (at.node.is_map() && at.node.find("base") != nullptr) return changed_model(at);
  if (!at.node.is_scalar()) {
    const std::optional<Target> target = follow(PresetKind::model, at);
    if (!target) return std::nullopt;
    return read_model(target->node, target->prefix, diagnostics_);
  }
  const tl::expected<Catalog::Model, std::string> found = catalog_.find_model(at.node.text, at.folder);
  if (!found) {
    diagnostics_.add(at.node.where, at.path, found.error());
    return std::nullopt;
  }
  const std::optional<std::string> text = text_of(PresetKind::model, found->file, at);
  if (!text) return std::nullopt;
  std::optional<ModelSpec> whole = model_of_file(*text, found->file, found->also);
  if (!whole || !found->layers) return whole;
  Node layers = Node::scalar(std::to_string(*found->layers));
  layers.where = at.node.where;
  return with_keys(*whole, {{"layers", at.node.where, std::move(layers)}}, at.node.where, at.path);
}

std::optional<ModelSpec> Loader::model_of_file(const std::string& text, const fs::path& file,
                                               std::string_view checkpoint) {
  if (file.extension() == ".json") {
    auto model = read_huggingface(text, huggingface_name(file), file.string(), diagnostics_);
    const auto shape = model ? std::nullopt : huggingface_shape(text);
    if (const std::string near = shape ? nearest_model(catalog_, *shape) : ""; !near.empty())
      diagnostics_.add(
          {std::make_shared<const std::string>(file.string()), 1, 1}, "",
          "a YAML of its shapes will do in its place (models/README.md); the nearest preset is " + near +
              ": {base: " + near + ", layers: ..., hidden: ...}");
    return model;
  }
  const std::optional<Node> node = parse(text, file.string(), diagnostics_);
  if (!node) return std::nullopt;
  const std::optional<ModelSpec> model = node->is_map() && node->find("base") != nullptr
                                             ? model_over_base(*node, file)
                                             : read_model(*node, "", diagnostics_);
  const Node* const also = model ? node->find("also") : nullptr;
  std::optional<ModelSpec> asked = model;
  bool good = model.has_value();
  for (const Node& item : also != nullptr ? std::span<const Node>(also->items) : std::span<const Node>()) {
    if (!item.is_map()) continue;
    std::optional<ModelSpec> its = checkpoint_of(*model, item);
    good = its.has_value() && good;
    if (&item == also_entry(*node, checkpoint)) asked = std::move(its);
  }
  return good ? asked : std::nullopt;
}

std::optional<ModelSpec> Loader::model_over_base(const Node& node, const fs::path& file) {
  const std::optional<Reference> base = base_of(PresetKind::model, node, "", file.parent_path());
  if (!base || !enter(*base, {node, "", file.parent_path()})) return std::nullopt;
  auto model = changed_model({node, "", file.parent_path()});
  leave(*base);
  return model;
}

std::optional<ModelSpec> Loader::checkpoint_of(const ModelSpec& whole, const Node& item) {
  std::vector<Entry> keys = item.entries;
  std::erase_if(keys, [](const Entry& key) { return key.key == "name"; });
  return with_keys(whole, keys, item.where, "also");
}

std::optional<Reference> Loader::base_of(PresetKind kind, const Node& map, const std::string& prefix,
                                         const fs::path& folder) {
  const Node& base = *map.find("base");
  if (base.is_scalar()) return Reference{base, key_path(prefix, "base"), folder};
  diagnostics_.add(
      base.where, key_path(prefix, "base"),
      fmt::format("must be the name or the path of a {}, not {}", name_of(kind), kind_name(base)));
  return std::nullopt;
}

std::optional<ModelSpec> Loader::changed_model(const Reference& at) {
  const std::optional<Reference> base = base_of(PresetKind::model, at.node, at.path, at.folder);
  const std::optional<ModelSpec> whole = base ? model(*base) : std::nullopt;
  if (!whole) return std::nullopt;
  std::vector<Entry> keys;
  for (const Entry& entry : at.node.entries)
    if (&entry.value != &base->node) keys.push_back(entry);
  return with_keys(*whole, keys, at.node.where, at.path);
}

std::optional<ModelSpec> Loader::with_keys(const ModelSpec& whole, const std::vector<Entry>& keys,
                                           const Location& where, const std::string& path) {
  Node node = write(whole);
  relocate(node, where);
  const auto changes = [&](std::string_view key) {
    return std::ranges::find(keys, key, &Entry::key) != keys.end();
  };
  // Removes values that follow from changed ones by default, unless they are given too, so that they are computed anew.
  const bool equal_heads = whole.kv_heads == whole.heads;
  if (changes("heads") && !changes("kv_heads") && equal_heads) node.erase("kv_heads");
  const bool whole_heads = whole.head_dim * whole.heads == whole.hidden;
  if ((changes("heads") || changes("hidden")) && whole_heads) node.erase("head_dim");
  if (changes("attention") && !whole.latent) {  // the widths of latent attention replace these
    node.erase("kv_heads");
    node.erase("head_dim");
  }
  std::vector<Entry> others;
  for (const Entry& key : keys) {
    Node* const group = node.find(key.key);
    if (group == nullptr || !group->is_map() || !key.value.is_map()) {
      others.push_back(key);
      continue;
    }
    replace_keys(group->entries, key.value.entries);
    if (key.key == "moe") forget_what_follows(*whole.moe, key.value, changes("ffn_hidden"), node);
  }
  replace_keys(node.entries, others);
  std::optional<ModelSpec> changed = read_model(node, path, diagnostics_);
  if (changed && changes("layers") && !changes("name"))
    changed->name = fmt::format("{}-l{}", whole.name, changed->layers);
  return changed;
}

std::optional<Loader::Target> Loader::follow_over_base(PresetKind kind, const Reference& at) {
  std::optional<Target> target = follow(kind, at);
  if (!target || !target->node.is_map() || target->node.find("technology") != nullptr) return target;
  const bool sheet = kind == PresetKind::device && is_sheet(target->node);
  std::optional<Target> whole;
  if (target->node.find("base") != nullptr) {
    const std::optional<Reference> base = base_of(kind, target->node, target->prefix, target->folder);
    if (!base || !enter(at, *target)) return std::nullopt;
    whole = follow_over_base(kind, *base);
    leave(at);
    if (!whole) return std::nullopt;
    target->node.erase("base");
  }
  if (whole && !whole->typical.empty()) {  // a share that the device itself gives is its own
    target->typical = absent_shares(target->node);
    std::erase_if(target->typical, [&](const DeviceNumber* share) {
      return std::ranges::find(whole->typical, share) == whole->typical.end();
    });
  }
  if (sheet) {
    target->own_links = target->node.find("links") != nullptr;
    auto device = by_parts(target->node, whole ? &whole->node : nullptr, target->prefix, diagnostics_);
    if (!device) return std::nullopt;
    target->node = std::move(device->parts);
    target->typical.insert(target->typical.end(), device->assumed.begin(), device->assumed.end());
  } else if (whole) {
    target->node = laid_over(target->node, whole->node);
  }
  return target;
}

void Loader::assume(AssumedShares shares) {
  if (std::ranges::find(assumed_shares_, shares.device, &AssumedShares::device) == assumed_shares_.end())
    assumed_shares_.push_back(std::move(shares));
}

std::optional<DevicePreset> Loader::device(const Reference& at) {
  const std::optional<Target> target = follow_over_base(PresetKind::device, at);
  if (!target) return std::nullopt;
  if (!target->node.is_map() || target->node.find("technology") == nullptr) return parts_device(*target);
  if (!enter(at, *target)) return std::nullopt;
  auto device = built_device(*target);
  leave(at);
  return device;
}

std::optional<DevicePreset> Loader::parts_device(const Target& target) {
  std::optional<DevicePreset> device = read_device(target.node, target.prefix, diagnostics_);
  if (!device) return std::nullopt;
  if (target.own_links) linked_devices_.insert(device->name);
  if (!target.typical.empty()) assume({device->name, target.node.where, target.typical, true});
  std::vector<const DeviceNumber*> absent = absent_shares(target.node);
  if (!absent.empty()) assume({device->name, target.node.where, std::move(absent)});
  return device;
}

std::optional<StackPreset> Loader::stack(const Reference& at) {
  const std::optional<Target> target = follow_over_base(PresetKind::stack, at);
  if (!target) return std::nullopt;
  return read_stack(target->node, target->prefix, diagnostics_);
}

std::optional<BytesPerSecond> Loader::take_links(Target& cluster) {
  std::optional<BytesPerSecond> links;
  const Node* const named = cluster.node.is_map() ? cluster.node.find("device") : nullptr;
  Node* const dimensions = cluster.node.is_map() ? cluster.node.find("dimensions") : nullptr;
  if (named == nullptr || named->is_list() || dimensions == nullptr || !dimensions->is_list()) return links;
  for (Node& dimension : dimensions->items) {
    const auto says = [&](const char* key) { return dimension.is_map() && dimension.find(key) != nullptr; };
    const auto is = [&](const char* key, std::string_view text) {
      return says(key) && dimension.find(key)->is_scalar() && dimension.find(key)->text == text;
    };
    if (!dimension.is_map() || says("bandwidth") || says("bandwidth_per_gpu") || is("kind", "custom") ||
        is("scope", "scale_out"))
      continue;
    Diagnostics ignored;  // what is wrong with the device is said where it is read
    const auto device =
        Loader(catalog_, ignored).device({*named, key_path(cluster.prefix, "device"), cluster.folder});
    if (!device || !(device->links.bandwidth().value() > 0)) return links;
    links = device->links.bandwidth();
    dimension.set("bandwidth_per_gpu", Node::scalar(format_quantity(links->value(), Dimension::bandwidth)));
    relocate(*dimension.find("bandwidth_per_gpu"), dimension.where);
  }
  return links;
}

std::optional<Cluster> Loader::cluster(const Reference& at) {
  std::optional<Target> target = follow_over_base(PresetKind::cluster, at);
  if (!target) return std::nullopt;
  const std::optional<BytesPerSecond> links = take_links(*target);
  const Node* device_reference = nullptr;
  std::optional<FabricTemplate> fabric =
      read_fabric(target->node, target->prefix, diagnostics_, &device_reference);
  if (device_reference == nullptr) return std::nullopt;
  const std::string device_path = key_path(target->prefix, "device");
  if (device_reference->is_list()) {
    diagnostics_.add(
        device_reference->where, device_path,
        "a cluster has devices of one kind; clusters that mix kinds are not modelled. To compare "
        "kinds, name one here and list them in the study: hardware: {device: [...]}");
    return std::nullopt;
  }
  std::optional<DevicePreset> gpu = device({*device_reference, device_path, target->folder});
  if (!fabric || !gpu) return std::nullopt;
  if (links) {
    fabric->fabric.device_links = *links;
    fabric->fabric.by_device_links = fabric->fabric.dimensions.front().bandwidth;
  }
  return Cluster{fabric->fabric.name, std::move(*gpu), std::move(*fabric)};
}

std::optional<technology::LogicNode> Loader::logic(const Reference& at) {
  const std::optional<Target> target = follow(PresetKind::logic, at);
  if (!target || !enter(at, *target)) return std::nullopt;
  auto result =
      read_logic(target->node, target->prefix, diagnostics_, [&](const Node& older, const std::string& path) {
        return shared_logic({older, path, target->folder});
      });
  leave(at);
  return result;
}

std::shared_ptr<const technology::LogicNode> Loader::shared_logic(const Reference& at) {
  auto node = logic(at);
  return node ? std::make_shared<const technology::LogicNode>(*std::move(node)) : nullptr;
}

std::optional<technology::MemoryTechnology> Loader::memory(const Reference& at) {
  const std::optional<Target> target = follow(PresetKind::memory, at);
  if (!target) return std::nullopt;
  return read_memory(target->node, target->prefix, diagnostics_);
}

std::optional<technology::NetworkTechnology> Loader::network(const Reference& at) {
  const std::optional<Target> target = follow(PresetKind::network, at);
  if (!target) return std::nullopt;
  return read_network(target->node, target->prefix, diagnostics_);
}

std::optional<technology::Floorplan> Loader::floorplan(const Reference& at) {
  const std::optional<Target> target = follow(PresetKind::floorplan, at);
  if (!target) return std::nullopt;
  const auto load_logic = [&](const Node& node, const std::string& path) {
    return shared_logic({node, path, target->folder});
  };
  const auto load_memory = [&](const Node& node, const std::string& path) {
    return memory({node, path, target->folder});
  };
  return read_floorplan(target->node, target->prefix, diagnostics_, load_logic, load_memory);
}

std::optional<std::vector<technology::Floorplan>> Loader::floorplans(const Node* references,
                                                                     const Location& where,
                                                                     const std::string& path,
                                                                     const fs::path& folder) {
  std::vector<Node> nodes;
  if (references != nullptr) {
    nodes = references->is_list() ? references->items : std::vector{*references};
  } else {
    for (const Catalog::Entry& entry : catalog_.list(PresetKind::floorplan))
      nodes.emplace_back(Node::scalar(entry.file.string())).where = where;
  }
  std::vector<technology::Floorplan> plans;
  for (const Node& node : nodes) {
    std::optional<technology::Floorplan> plan = floorplan({node, path, folder});
    if (!plan) return std::nullopt;
    plans.push_back(*std::move(plan));
  }
  return plans;
}

std::optional<technology::Choice> Loader::technology_choice(std::string_view key, const Reference& at) {
  technology::Choice choice;
  if (key == "logic") choice.logic = logic(at);
  if (key == "memory") choice.memory = memory(at);
  if (key == "network") choice.network = network(at);
  const auto keep = [&](auto parsed, auto& value, const Range& range) {
    if (parsed && range.holds(parsed->value())) {
      value = *parsed;
    } else {
      diagnostics_.add(at.node.where, at.path, parsed ? range.violated_by(parsed->value()) : parsed.error());
    }
  };
  if (key == "area") keep(parse_value<technology::SquareMetres>(at.node), choice.area, ranges::kArea);
  if (key == "power") keep(parse_value<technology::Watts>(at.node), choice.power, ranges::kPower);
  if (choice.empty()) return std::nullopt;
  return choice;
}

tl::expected<technology::BuiltDevice, Problems> build_device(
    const DeviceSpec& device, const std::vector<technology::Floorplan>& floorplans,
    const technology::Choice& choice) {
  const auto plan = std::ranges::find(floorplans, device.name, &technology::Floorplan::device);
  if (plan != floorplans.end()) return technology::build_device(device, *plan, choice);
  std::vector<std::string> devices;
  for (const technology::Floorplan& known : floorplans) devices.push_back(known.device);
  Problems problems;
  problems.add("base", "device " + device.name + " has no floor plan to scale it by; devices with one: " +
                           (devices.empty() ? "none" : join(devices)));
  return tl::unexpected(std::move(problems));
}

std::optional<DevicePreset> Loader::built_device(const Target& target) {
  const std::size_t before = diagnostics_.size();
  ReadState state(target.node.where, target.prefix, diagnostics_);
  Reader reader(target.node, "", state);
  const Node& recipe = *reader.take("technology");
  reader.finish();
  Reader keys(recipe, "technology", state);
  if (!recipe.is_map()) return std::nullopt;
  const std::string inside = key_path(target.prefix, "technology.");
  std::optional<DevicePreset> base;
  if (const Node* key = keys.take_required("base")) base = device({*key, inside + "base", target.folder});
  technology::Choice choice;
  for (const char* key : kTechnologyKeys) {
    const Node* value = keys.take(key);
    if (value == nullptr) continue;
    if (const auto part = technology_choice(key, {*value, inside + key, target.folder})) choice.merge(*part);
  }
  const auto plans = floorplans(keys.take("floorplan"), recipe.where, inside + "floorplan", target.folder);
  keys.finish();
  if (diagnostics_.size() != before || !base || !plans) return std::nullopt;
  auto built = build_device(*base, *plans, choice);
  if (built) return DevicePreset{std::move(built->device), base->tables};
  for (const Problem& problem : built.error().list()) {
    const Node* key = recipe.find(problem.field);
    diagnostics_.add(key != nullptr ? key->where : recipe.where, inside + problem.field, problem.message);
  }
  return std::nullopt;
}

tl::unexpected<Diagnostics> refused(Diagnostics diagnostics) {
  diagnostics.sort();
  return tl::unexpected(std::move(diagnostics));
}

tl::unexpected<Diagnostics> refused_file(const fs::path& file, const std::string& why) {
  Diagnostics diagnostics;
  diagnostics.add({std::make_shared<const std::string>(file.string()), 0, 0}, "", why);
  return refused(std::move(diagnostics));
}

Loaded<ModelSpec> load_model(const Catalog& catalog, std::string_view name, const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::model);
}
Loaded<DevicePreset> load_device(const Catalog& catalog, std::string_view name, const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::device);
}
Loaded<Cluster> load_cluster(const Catalog& catalog, std::string_view name, const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::cluster);
}
Loaded<StackPreset> load_stack(const Catalog& catalog, std::string_view name, const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::stack);
}
Loaded<technology::LogicNode> load_logic(const Catalog& catalog, std::string_view name,
                                         const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::logic);
}
Loaded<technology::MemoryTechnology> load_memory(const Catalog& catalog, std::string_view name,
                                                 const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::memory);
}
Loaded<technology::NetworkTechnology> load_network(const Catalog& catalog, std::string_view name,
                                                   const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::network);
}
Loaded<technology::Floorplan> load_floorplan(const Catalog& catalog, std::string_view name,
                                             const fs::path& relative_to) {
  return load(catalog, name, relative_to, &Loader::floorplan);
}

}  // namespace shardscape::yaml
