// Reads the `workload:` of a study: one phase, and lists of its numbers, multiplied out; a load that is simulated
// request by request, where there is one (load_parser.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/spec/model.h"
#include "engine/spec/workload.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

struct ParsedWorkload {
  Phase phase = Phase::training;
  bool phase_known = false;
  std::vector<WorkloadSpec> workloads;  ///< the file's first key is slowest; empty where there are problems
  yaml::Node resolved;                  ///< the same map with every default filled in
  std::vector<std::filesystem::path> tables;  ///< those that were read
  std::vector<std::string> assumptions;       ///< as in Study
};

/// Reads the workload. Paths in it are relative to `folder`. `model`: whose positions end sessions; null: none do.
ParsedWorkload parse_workload(const yaml::Node& node, yaml::Diagnostics& diagnostics,
                              const std::filesystem::path& folder = {}, const ModelSpec* model = nullptr);

}  // namespace shardscape::sweep
