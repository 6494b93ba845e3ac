// Reads a spec from parsed YAML and writes it, both by its describe(), which names the keys once.
#pragma once

#include <optional>
#include <string>

#include "sweep/yaml/visitors.h"

namespace shardscape::yaml {

/// The spec of a map if it passes its own validate(); otherwise nothing, with every problem in `diagnostics`.
/// `take_references` first reads the keys that refer to other specs, and returns false where one of them is bad.
/// `paths`: as in ReadState::set_paths().
template <class Spec, class Take>
std::optional<Spec> read_spec(const Node& node, const std::string& prefix, Diagnostics& diagnostics,
                              const Take& take_references, std::vector<std::string> (*paths)() = nullptr) {
  Spec spec;
  ReadState state(node.where, prefix, diagnostics);
  state.set_paths(paths);
  Reader reader(node, "", state);
  if (!node.is_map()) return std::nullopt;
  const bool references = take_references(reader, spec);
  describe(reader, spec);
  reader.finish();
  if (!references) return std::nullopt;
  state.report(spec.validate());
  if (state.failed()) return std::nullopt;
  return spec;
}

template <class Spec>
std::optional<Spec> read_spec(const Node& node, const std::string& prefix, Diagnostics& diagnostics) {
  return read_spec<Spec>(node, prefix, diagnostics, [](Reader&, Spec&) { return true; });
}

template <class Spec>
Node write_spec(Spec spec) {
  Node node = Node::map();
  Writer writer(node);
  describe(writer, spec);
  return node;
}

}  // namespace shardscape::yaml
