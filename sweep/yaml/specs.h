// Specs out of parsed YAML and back. Readers report every problem, their own and those of validate(), and
// give the spec only where there is none.
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
#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

/// `prefix` goes before paths in messages: empty for a file of its own, "model" for a model inside a study.
std::optional<ModelSpec> read_model(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
std::optional<DeviceSpec> read_device(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
std::optional<StackProfile> read_stack(const Node& node, const std::string& prefix, Diagnostics& diagnostics);
/// The fabric of a cluster; `device` is a required key of the same map, given back unread where it is there.
std::optional<FabricTemplate> read_fabric(const Node& node, const std::string& prefix,
                                          Diagnostics& diagnostics, const Node** device);

/// Every key, defaults filled in; reading it gives an equal spec.
Node write(const ModelSpec& model);
Node write(const DeviceSpec& device);
Node write(const StackProfile& stack);
/// Without the cluster's `device`.
Node write(const FabricSpec& fabric);

/// The paths of a device or a stack, each after "PREFIX.".
std::vector<Leaf> device_leaves(const std::string& prefix);
std::vector<Leaf> stack_leaves(const std::string& prefix);

}  // namespace shardscape::yaml
