// The `faults:` part of a study file.
//
//   kind           a kind, a list of kinds, or a list of {kind, weight}
//   samples        per point, 1 .. 1,000,000 (200); not with `exhaustive`, which takes every place once
//   simultaneous   faults per sample (1)
//   derate         share that remains, 0 < share <= 1: a number, or a distribution:
//                    {distribution: normal, mean, std}, {.. uniform, min, max}, {.. beta, alpha, beta},
//                    {.. constant, value}, {.. empirical, values: [..]}; each but constant with the range
//                    min, max (0.01, 1) that it is truncated to
//   added_latency  of soft links (0)
//   directions     both (default) or one: of link faults
//   placement      uniform_links | exhaustive | {dimension: NAME} | {links: [[A, B], ..]}
//   seed           0 .. 2^63 - 1 (0)
//   target_ci      such as 1%: sampling of a point stops where the 95 % confidence interval of its mean
//                  slowdown is at most that wide
#pragma once

#include <optional>

#include "engine/spec/fabric_spec.h"
#include "engine/spec/workload.h"
#include "sweep/faults/fault_study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

inline constexpr std::int64_t kMostSamples = 1'000'000;

/// Reads the part; nothing where there is a problem, all of which are reported. Checks that depend on `fabric` or
/// `phase` are made only where these are known.
std::optional<FaultStudy> parse_faults_key(const yaml::Node& node, const FabricSpec* fabric,
                                           std::optional<Phase> phase, yaml::Diagnostics& diagnostics);

/// The part with every default filled in; parses back to an equal study.
yaml::Node write_faults(const FaultStudy& faults);

}  // namespace shardscape::sweep
