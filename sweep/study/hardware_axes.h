// The `hardware:` of a study: what-if axes over numbers and choices of the device, the fabric and the stack.
//
// An axis patches the YAML tree of the resolved part and reads it again, strictly: a what-if obeys every rule
// that a file obeys.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/spec/scenario.h"
#include "sweep/study/study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

struct ParsedHardware {
  std::vector<HardwareAxis> axes;  ///< in file order, first slowest
  std::vector<System>
      systems;  ///< their product; the base alone without axes; empty where there are problems
};

/// `node` may be null (no `hardware:`). `max_systems` bounds the product.
ParsedHardware parse_hardware(const yaml::Node* node, const System& base, std::size_t max_systems,
                              yaml::Diagnostics& diagnostics);

}  // namespace shardscape::sweep
