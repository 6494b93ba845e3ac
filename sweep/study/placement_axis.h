// The `placement:` of a study: where the ranks of a plan lie on the fabric.
//
//   plain      rank r of the plan, numbered by its rank order, on rank r of the fabric
//   optimised  the fastest placement that a search from there finds (sweep/placement)
//
// It is an axis beside those of `hardware`, the last of them: HardwareAxis "placement".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/base/enum_names.h"
#include "sweep/study/study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

enum class PlacementChoice : std::uint8_t { plain, optimised };

/// The placement that the axes give one of the study's systems; plain where there is no such axis.
PlacementChoice placement_of(const Study& study, std::size_t system);

/// Reads the key and appends its axis to study.hardware, with which study.systems multiply. Changes nothing where there
/// is a problem.
void add_placement_axis(const yaml::Node& node, std::size_t max_systems, Study& study,
                        yaml::Diagnostics& diagnostics);

/// The key as YAML, as the study has it; nothing where the study has none.
std::optional<yaml::Node> write_placement(const Study& study);

}  // namespace shardscape::sweep
