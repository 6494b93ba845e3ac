#include "sweep/yaml/read_technology.h"

#include "engine/base/words.h"
#include "sweep/yaml/read_spec.h"

namespace shardscape::yaml {

using technology::Floorplan;
using technology::LogicNode;
using technology::MemoryTechnology;
using technology::NetworkTechnology;

// The keys of each spec; references to other specs are read and written separately.

template <class V>
void describe(V& v, LogicNode& logic) {
  v.required("name", logic.name);
  v.comment("source");
  v.required("density", logic.step.density);
  v.required("clock_at_equal_power", logic.step.clock_at_equal_power);
  v.required("power_at_equal_clock", logic.step.power_at_equal_clock);
  v.required("sram_cell", logic.sram_cell);
}

template <class V>
void describe(V& v, MemoryTechnology& memory) {
  v.required("name", memory.name);
  v.comment("source");
  v.required("capacity_per_stack", memory.capacity_per_stack);
  v.required("bandwidth_per_stack", memory.bandwidth_per_stack);
  v.required("energy", memory.energy);
  v.required("edge", memory.edge);
}

template <class V>
void describe(V& v, NetworkTechnology& network) {
  v.required("name", network.name);
  v.comment("source");
  v.required("bandwidth", network.bandwidth);
  v.required("energy", network.energy);
}

template <class V>
void describe(V& v, Floorplan& plan) {
  v.required("name", plan.name);
  v.required("device", plan.device);
  v.comment("source");
  v.required("area", plan.area);
  v.required("sm_share", plan.sm_share);
  v.required("l2_share", plan.l2_share);
  v.required("sm_sram_share", plan.sm_sram_share);
  v.required("l2_sram_share", plan.l2_sram_share);
  v.required("memory_edge", plan.memory_edge);
  v.required("power", plan.power);
  v.group("clock", [&](V& clock) {
    clock.required("least", plan.least_clock);
    clock.required("most", plan.most_clock);
  });
}

std::optional<LogicNode> read_logic(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                                    const LogicReference& load_older) {
  return read_spec<LogicNode>(node, prefix, diagnostics, [&](Reader& reader, LogicNode& logic) {
    const Node* older = reader.take("relative_to");
    if (older == nullptr) return true;
    logic.relative_to = load_older(*older, key_path(prefix, "relative_to"));
    return logic.relative_to != nullptr;
  });
}

std::optional<MemoryTechnology> read_memory(const Node& node, const std::string& prefix,
                                            Diagnostics& diagnostics) {
  return read_spec<MemoryTechnology>(node, prefix, diagnostics);
}

std::optional<NetworkTechnology> read_network(const Node& node, const std::string& prefix,
                                              Diagnostics& diagnostics) {
  return read_spec<NetworkTechnology>(node, prefix, diagnostics);
}

std::optional<Floorplan> read_floorplan(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                                        const LogicReference& load_logic,
                                        const MemoryReference& load_memory) {
  return read_spec<Floorplan>(node, prefix, diagnostics, [&](Reader& reader, Floorplan& plan) {
    const Node* logic_node = reader.take_required("logic");
    const Node* memory_node = reader.take_required("memory");
    if (logic_node == nullptr || memory_node == nullptr) return false;
    const auto logic = load_logic(*logic_node, key_path(prefix, "logic"));
    const auto memory = load_memory(*memory_node, key_path(prefix, "memory"));
    if (!logic || !memory) return false;
    plan.logic = *logic;
    plan.memory = *memory;
    return true;
  });
}

Node write(const LogicNode& logic) {
  Node node = write_spec(logic);
  if (logic.relative_to) node.set("relative_to", write(*logic.relative_to));
  return node;
}

Node write(const MemoryTechnology& memory) { return write_spec(memory); }
Node write(const NetworkTechnology& network) { return write_spec(network); }

Node write(const Floorplan& floorplan) {
  Node node = write_spec(floorplan);
  node.set("logic", write(floorplan.logic));
  node.set("memory", write(floorplan.memory));
  return node;
}

}  // namespace shardscape::yaml
