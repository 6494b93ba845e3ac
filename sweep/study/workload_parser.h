// Reads the `workload:` of a study: one phase, and lists of its numbers, multiplied out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/spec/workload.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

struct ParsedWorkload {
  Phase phase = Phase::training;
  bool phase_known = false;
  std::vector<WorkloadSpec> workloads;  ///< the file's first key is slowest; empty where there are problems
  yaml::Node resolved;                  ///< the same map with every default filled in
};

ParsedWorkload parse_workload(const yaml::Node& node, yaml::Diagnostics& diagnostics);

}  // namespace shardscape::sweep
