// The `hardware:` of a study: what-if axes over the device, the fabric and the stack. Four forms:
//
//   device.hbm.bandwidth: ["2.0 TB/s", "3.35 TB/s"]     values of one setting, by its path
//   device: [a100-sxm-80gb, h100-sxm-80gb]              whole parts: device, cluster (with its device), stack
//   variant: {base: {}, B: {device.l2.capacity: ...}}   named variants: several settings and parts together
//   technology.logic: [n7, n5]                          the device rebuilt, see system_changes.h
//   technology.floorplan: ga100                         by this floor plan: no axis, may be left out
//
// Axes multiply. Whole parts are put in first, then technologies, settings by path on top of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/spec/scenario.h"
#include "sweep/study/study.h"
#include "sweep/study/system_changes.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

struct ParsedHardware {
  std::vector<HardwareAxis> axes;  ///< axes in file order, the first slowest
  std::vector<System>
      systems;          ///< product of the axes; only the base without axes; empty where there are problems
  yaml::Node resolved;  ///< the axes, whole parts in full; parses back to the same systems
};

struct HardwareLimits {
  std::size_t systems = 1;                 ///< the most systems that the product may have
  std::vector<std::string> taken_columns;  ///< names that no variant axis may have
};

/// Reads the axes; `node` may be null (no `hardware:`).
ParsedHardware parse_hardware(const yaml::Node* node, const BaseSystem& base, const HardwareLimits& limits,
                              yaml::Loader& loader, yaml::Diagnostics& diagnostics);

/// The axis of a study with several numbers of GPUs.
HardwareAxis gpus_axis(const std::vector<std::int64_t>& counts);

/// Whether both fabrics have the same dimensions with the same links, whatever their rates.
bool same_wiring(const FabricSpec& a, const FabricSpec& b);

}  // namespace shardscape::sweep
