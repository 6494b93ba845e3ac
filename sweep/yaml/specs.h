// Reads specs and technologies (logic nodes, memories, networks, floor plans) from parsed YAML and writes them. Readers
// report every problem, also those of validate(), and return the spec only where there is none.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"
#include "sweep/technology/technology.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/preset_specs.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::technology {

constexpr yaml::Dimension dimension_of(Metres) { return yaml::Dimension::length; }
constexpr yaml::Dimension dimension_of(SquareMetres) { return yaml::Dimension::area; }
constexpr yaml::Dimension dimension_of(JoulesPerBit) { return yaml::Dimension::energy_per_bit; }

}  // namespace shardscape::technology

namespace shardscape::yaml {

/// `prefix` goes before paths in messages: empty for a file of its own, "model" for a model inside a study.
std::optional<ModelSpec> read_model(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
std::optional<DevicePreset> read_device(const Node& node, const std::string& prefix,
                                        Diagnostics& diagnostics);
std::optional<StackPreset> read_stack(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
/// The fabric of a cluster; `device` is a required key of the same map, which is handed back unread if it is there.
std::optional<FabricTemplate> read_fabric(const Node& node, const std::string& prefix,
                                          Diagnostics& diagnostics, const Node** device);

/// Loads what a key refers to; `path` is the key's path in messages. Null or nothing where there are problems.
using LogicReference = std::function<std::shared_ptr<const technology::LogicNode>(const Node& reference,
                                                                                  const std::string& path)>;
using MemoryReference = std::function<std::optional<technology::MemoryTechnology>(const Node& reference,
                                                                                  const std::string& path)>;

/// Each reads one technology; `prefix` as above. A spec that is returned passes its own validate().
std::optional<technology::LogicNode> read_logic(const Node& node, const std::string& prefix,
                                                Diagnostics& diagnostics, const LogicReference& load_older);
std::optional<technology::MemoryTechnology> read_memory(const Node& node, const std::string& prefix,
                                                        Diagnostics& diagnostics);
std::optional<technology::NetworkTechnology> read_network(const Node& node, const std::string& prefix,
                                                          Diagnostics& diagnostics);
std::optional<technology::Floorplan> read_floorplan(const Node& node, const std::string& prefix,
                                                    Diagnostics& diagnostics,
                                                    const LogicReference& load_logic,
                                                    const MemoryReference& load_memory);

/// The spec with every key, defaults filled in; reading it gives an equal spec.
Node write(const ModelSpec& model);
Node write(const DeviceSpec& device);
Node write(const StackProfile& stack);
/// The same, with the keys that are for tables of measurements.
Node write(const DevicePreset& device);
Node write(const StackPreset& stack);
/// The fabric, without the cluster's `device`.
Node write(const FabricSpec& fabric);
Node write(const Cluster& cluster);
Node write(const technology::LogicNode& logic);
Node write(const technology::MemoryTechnology& memory);
Node write(const technology::NetworkTechnology& network);
Node write(const technology::Floorplan& floorplan);

/// A spec of any kind as YAML with every default filled in; loading it gives an equal spec.
template <class Spec>
std::string to_yaml(const Spec& spec) {
  return emit(write(spec));
}

/// All paths of a device, a stack or a model (with experts and latent attention), each after "PREFIX.".
std::vector<Leaf> device_leaves(const std::string& prefix);
std::vector<Leaf> stack_leaves(const std::string& prefix);
std::vector<Leaf> model_leaves(const std::string& prefix);

}  // namespace shardscape::yaml
