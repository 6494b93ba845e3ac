// Reads technologies from parsed YAML and writes them: logic nodes, memories, networks, floor plans. Readers report
// every problem, as those of specs.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sweep/technology/technology.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/specs.h"

namespace shardscape::technology {

constexpr yaml::Dimension dimension_of(Metres) { return yaml::Dimension::length; }
constexpr yaml::Dimension dimension_of(SquareMetres) { return yaml::Dimension::area; }
constexpr yaml::Dimension dimension_of(JoulesPerBit) { return yaml::Dimension::energy_per_bit; }

}  // namespace shardscape::technology

namespace shardscape::yaml {

/// Loads what a key refers to; `path` is the key's path in messages. Null or nothing where there are problems.
using LogicReference = std::function<std::shared_ptr<const technology::LogicNode>(const Node& reference,
                                                                                  const std::string& path)>;
using MemoryReference = std::function<std::optional<technology::MemoryTechnology>(const Node& reference,
                                                                                  const std::string& path)>;

/// Each reads one technology; `prefix` as in specs.h. A spec that is returned passes its own validate().
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

Node write(const technology::LogicNode& logic);
Node write(const technology::MemoryTechnology& memory);
Node write(const technology::NetworkTechnology& network);
Node write(const technology::Floorplan& floorplan);

/// A spec of any kind as YAML with every default filled in; loading it gives an equal spec.
template <class Spec>
std::string to_yaml(const Spec& spec) {
  return emit(write(spec));
}

}  // namespace shardscape::yaml
