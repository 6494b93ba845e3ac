// Reads specs from parsed YAML and writes them. Readers report every problem, also those of validate(), and return the
// spec only where there is none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/preset_specs.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

/// `prefix` goes before paths in messages: empty for a file of its own, "model" for a model inside a study.
std::optional<ModelSpec> read_model(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
std::optional<DevicePreset> read_device(const Node& node, const std::string& prefix,
                                        Diagnostics& diagnostics);
std::optional<StackPreset> read_stack(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
/// The fabric of a cluster; `device` is a required key of the same map, which is handed back unread if it is there.
std::optional<FabricTemplate> read_fabric(const Node& node, const std::string& prefix,
                                          Diagnostics& diagnostics, const Node** device);

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

/// All paths of a device, a stack or a model (with experts and latent attention), each after "PREFIX.".
std::vector<Leaf> device_leaves(const std::string& prefix);
std::vector<Leaf> stack_leaves(const std::string& prefix);
std::vector<Leaf> model_leaves(const std::string& prefix);

}  // namespace shardscape::yaml
