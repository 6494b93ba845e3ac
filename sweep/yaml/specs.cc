#include "sweep/yaml/specs.h"

#include "sweep/yaml/describe.h"
#include "sweep/yaml/read_spec.h"

namespace shardscape::yaml {

namespace {

template <class Spec>
std::vector<Leaf> leaves(const std::string& prefix) {
  std::vector<Leaf> result;
  Lister lister(prefix, result);
  Spec spec;
  describe(lister, spec);
  return result;
}

}  // namespace

std::optional<ModelSpec> read_model(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  return read_spec<ModelSpec>(node, prefix, diagnostics);
}

std::optional<DevicePreset> read_device(const Node& node, const std::string& prefix,
                                        Diagnostics& diagnostics) {
  return read_spec<DevicePreset>(node, prefix, diagnostics);
}

std::optional<StackPreset> read_stack(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  constexpr auto paths = [] {
    std::vector<std::string> all;
    for (const Leaf& leaf : leaves<StackPreset>("")) all.push_back(leaf.path);
    return all;
  };
  return read_spec<StackPreset>(
      node, prefix, diagnostics, [](Reader&, StackPreset&) { return true; }, paths);
}

std::optional<FabricTemplate> read_fabric(const Node& node, const std::string& prefix,
                                          Diagnostics& diagnostics, const Node** device) {
  FabricTemplate result;
  ReadState state(node.where, prefix, diagnostics);
  Reader reader(node, "", state);
  *device = nullptr;
  if (!node.is_map()) return std::nullopt;
  *device = reader.take_required("device");
  describe(reader, result.fabric);
  reader.finish();
  state.report(result.fabric.validate());
  if (state.failed()) return std::nullopt;
  return result;
}

Node write(const ModelSpec& model) { return write_spec(model); }
Node write(const DeviceSpec& device) { return write_spec(device); }
Node write(const StackProfile& stack) { return write_spec(stack); }
Node write(const DevicePreset& device) { return write_spec(device); }
Node write(const StackPreset& stack) { return write_spec(stack); }
Node write(const FabricSpec& fabric) { return write_spec(fabric); }
Node write(const Cluster& cluster) {
  Node node = write(cluster.fabric.fabric);
  node.set("device", write(cluster.device));
  return node;
}

std::vector<Leaf> device_leaves(const std::string& prefix) { return leaves<DevicePreset>(prefix); }
std::vector<Leaf> stack_leaves(const std::string& prefix) { return leaves<StackPreset>(prefix); }
std::vector<Leaf> model_leaves(const std::string& prefix) { return leaves<ModelSpec>(prefix); }

}  // namespace shardscape::yaml
