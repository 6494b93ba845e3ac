#include "sweep/validate/presets.h"

#include <utility>

#include "engine/base/joined.h"

namespace shardscape::validate {

namespace {

namespace fs = std::filesystem;

template <class Spec>
using Load = tl::expected<Spec, yaml::Diagnostics> (*)(const yaml::Catalog&, std::string_view,
                                                       const fs::path&);

/// All problems in one line.
std::string one_line(const yaml::Diagnostics& diagnostics) {
  return joined(diagnostics.list(), "; ",
                [](const yaml::Diagnostic& diagnostic) { return yaml::to_string(diagnostic); });
}

/// Loads a spec by name. Models also have names that are no files: those of their `also` lists, and NAME-lN.
template <class Spec>
tl::expected<Spec, std::string> load(const yaml::Catalog& catalog, yaml::PresetKind kind,
                                     const std::string& name, const fs::path& folder, Load<Spec> loader) {
  if (kind == yaml::PresetKind::model) {
    if (const auto model = catalog.find_model(name, folder); !model) return tl::unexpected(model.error());
    auto spec = loader(catalog, name, folder);
    if (!spec) return tl::unexpected(one_line(spec.error()));
    return *std::move(spec);
  }
  const auto file = catalog.find(kind, name, folder);
  if (!file) return tl::unexpected(file.error());
  auto spec = loader(catalog, file->string(), {});
  if (!spec) return tl::unexpected(one_line(spec.error()));
  return *std::move(spec);
}

template <class Spec>
Presets::Found<Spec> find(std::map<std::string, tl::expected<Spec, std::string>>& cache,
                          const yaml::Catalog& catalog, yaml::PresetKind kind, const std::string& name,
                          const fs::path& folder, Load<Spec> loader) {
  const std::string key = yaml::is_path(name) ? (folder / name).string() : name;
  auto found = cache.find(key);
  if (found == cache.end()) found = cache.emplace(key, load(catalog, kind, name, folder, loader)).first;
  if (!found->second) return tl::unexpected(found->second.error());
  return &*found->second;
}

}  // namespace

Presets::Found<ModelSpec> Presets::model(const std::string& name, const fs::path& folder) {
  return find(models_, catalog_, yaml::PresetKind::model, name, folder, &yaml::load_model);
}

Presets::Found<yaml::Cluster> Presets::cluster(const std::string& name, const fs::path& folder) {
  const std::size_t known = clusters_.size();
  auto found = find(clusters_, catalog_, yaml::PresetKind::cluster, name, folder, &yaml::load_cluster);
  if (clusters_.size() > known) replace_devices();
  return found;
}

Presets::Found<yaml::DevicePreset> Presets::device(const std::string& name, const fs::path& folder) {
  const std::size_t known = devices_.size();
  auto found = find(devices_, catalog_, yaml::PresetKind::device, name, folder, &yaml::load_device);
  if (devices_.size() > known) replace_devices();
  return found;
}

Presets::Found<yaml::StackPreset> Presets::stack(const std::string& name, const fs::path& folder) {
  return find(stacks_, catalog_, yaml::PresetKind::stack, name, folder, &yaml::load_stack);
}

PoolRecipes& Presets::pool_recipes() {
  for (const fs::path& folder : catalog_.directories()) {
    if (pool_recipes_) break;
    if (const auto text = read_table(folder / kPoolRecipes))
      pool_recipes_.emplace(parse_csv(*text, kPoolRecipes));
  }
  if (!pool_recipes_) pool_recipes_.emplace(Table{});
  return *pool_recipes_;
}

void Presets::replace_stack(const std::string& name, yaml::StackPreset stack) {
  const auto found = stacks_.find(name);
  if (found != stacks_.end() && found->second) {
    *found->second = std::move(stack);
  } else {
    stacks_.insert_or_assign(name, std::move(stack));
  }
}

void Presets::replace_device(const DeviceSpec& device) {
  replaced_devices_.insert_or_assign(device.name, device);
  replace_devices();
}

void Presets::replace_devices() {
  for (const auto& [name, device] : replaced_devices_) {
    for (auto& [key, known] : devices_) {
      if (known && known->name == name) static_cast<DeviceSpec&>(*known) = device;
    }
    for (auto& [key, cluster] : clusters_) {
      if (cluster && cluster->device.name == name) cluster->device = device;
    }
  }
}

}  // namespace shardscape::validate
