// Models, clusters, devices and stacks by name; each is read once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "sweep/validate/pool_recipes.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/load.h"

namespace shardscape::validate {

/// Pointers stay valid as long as the object. Errors say what is wrong with the name or its file. Not thread-safe.
class Presets {
 public:
  explicit Presets(yaml::Catalog catalog) : catalog_(std::move(catalog)) {}

  template <class Spec>
  using Found = tl::expected<const Spec*, std::string>;

  /// Looks up a name or a path, relative to `folder` or the working directory.
  Found<ModelSpec> model(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::Cluster> cluster(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::DevicePreset> device(const std::string& name, const std::filesystem::path& folder = {});
  Found<yaml::StackPreset> stack(const std::string& name, const std::filesystem::path& folder = {});

  /// Makes `name` mean this profile from now on (for what-ifs and fits). Earlier pointers for that name see it, too.
  void replace_stack(const std::string& name, yaml::StackPreset stack);
  /// Whether the stack was replaced or read before.
  [[nodiscard]] bool has_stack(const std::string& name) const { return stacks_.contains(name); }
  /// Replaces the device of that name, also in every cluster that is made of it.
  void replace_device(const DeviceSpec& device);

  [[nodiscard]] const yaml::Catalog& catalog() const { return catalog_; }
  /// Public recipes of disaggregated servers, of the first preset folder that has any.
  PoolRecipes& pool_recipes();

 private:
  template <class Spec>
  using Cache = std::map<std::string, tl::expected<Spec, std::string>>;
  void replace_devices();

  yaml::Catalog catalog_;
  Cache<ModelSpec> models_;
  Cache<yaml::Cluster> clusters_;
  Cache<yaml::DevicePreset> devices_;
  Cache<yaml::StackPreset> stacks_;
  std::map<std::string, DeviceSpec> replaced_devices_;  ///< by name
  std::optional<PoolRecipes> pool_recipes_;
};

}  // namespace shardscape::validate
