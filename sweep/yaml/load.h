// Loads files into validated specs. Each loader gives either a spec that passes its own validate(), or every problem of
// its files.
//
// Loaders read the file system and keep no state; they are safe to call from any thread. Names are looked up
// in the catalog or taken as paths (see Catalog::find).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/table_keys.h"

namespace shardscape::yaml {

/// A cluster: one kind of GPU on one fabric, whose outermost dimension may be open (see FabricTemplate).
struct Cluster {
  std::string name;
  DeviceSpec device;
  FabricTemplate fabric;
};

/// Loads a model description, or a Hugging Face config.json (see huggingface.h) where the file ends in .json.
tl::expected<ModelSpec, Diagnostics> load_model(const Catalog& catalog, std::string_view name,
                                                const std::filesystem::path& relative_to = {});
tl::expected<DevicePreset, Diagnostics> load_device(const Catalog& catalog, std::string_view name,
                                                    const std::filesystem::path& relative_to = {});
tl::expected<Cluster, Diagnostics> load_cluster(const Catalog& catalog, std::string_view name,
                                                const std::filesystem::path& relative_to = {});
tl::expected<StackPreset, Diagnostics> load_stack(const Catalog& catalog, std::string_view name,
                                                  const std::filesystem::path& relative_to = {});
tl::expected<technology::LogicNode, Diagnostics> load_logic(const Catalog& catalog, std::string_view name,
                                                            const std::filesystem::path& relative_to = {});
tl::expected<technology::MemoryTechnology, Diagnostics> load_memory(
    const Catalog& catalog, std::string_view name, const std::filesystem::path& relative_to = {});
tl::expected<technology::NetworkTechnology, Diagnostics> load_network(
    const Catalog& catalog, std::string_view name, const std::filesystem::path& relative_to = {});
tl::expected<technology::Floorplan, Diagnostics> load_floorplan(
    const Catalog& catalog, std::string_view name, const std::filesystem::path& relative_to = {});

/// The spec as YAML with every default filled in; loading it gives an equal spec.
std::string to_yaml(const ModelSpec& model);
std::string to_yaml(const DeviceSpec& device);
std::string to_yaml(const DevicePreset& device);
std::string to_yaml(const Cluster& cluster);
std::string to_yaml(const StackProfile& stack);
std::string to_yaml(const StackPreset& stack);
std::string to_yaml(const technology::LogicNode& logic);
std::string to_yaml(const technology::MemoryTechnology& memory);
std::string to_yaml(const technology::NetworkTechnology& network);
std::string to_yaml(const technology::Floorplan& floorplan);

}  // namespace shardscape::yaml
