// The `reliability:` part of a study file: all times with a unit.
//
//   device_mtbf          mean time between failures of one device with its share of the machine
//   checkpoint_write     time of writing a checkpoint, during which nothing else happens
//   restart              from a failure to the run going on from its last checkpoint
//   checkpoint_interval  work between checkpoints, or `optimal` (default): Daly's
//   fault_share          share of the time in which the study's faults are there (1); only with `faults:`
#pragma once

#include <optional>

#include "engine/spec/workload.h"
#include "sweep/faults/reliability.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// Reads the part; nothing where there is a problem, all of which are reported.
std::optional<Reliability> parse_reliability(const yaml::Node& node, bool faults, std::optional<Phase> phase,
                                             yaml::Diagnostics& diagnostics);

/// The part with every default filled in; parses back to an equal study.
yaml::Node write_reliability(const Reliability& reliability, bool faults);

}  // namespace shardscape::sweep
