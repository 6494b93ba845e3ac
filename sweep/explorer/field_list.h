// What a study has that can be changed: the numbers and choices of device, fabric, stack and workload, and the axes of
// a plan.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/spec/scenario.h"
#include "sweep/study/study.h"
#include "sweep/study/system_changes.h"
#include "sweep/yaml/node.h"

namespace shardscape::explorer {

/// What changes of single numbers start from.
sweep::BaseSystem base_of(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan);

/// {"groups": [{"name", "fields": [{"key", "label", "kind", "value", "text", "unit", "low", "high", "choices",
/// "meaning", "worth": {"unit_step", "unit_text"}}]}], "plan": [{"name", "meaning", "kind", "values", "value"}]}, at the
/// values of a setting and a plan of the study. Values are in SI units; `worth` is there where a number moves the time.
/// `workload`: the study's, as a file has it.
nlohmann::ordered_json fields_json(const sweep::Study& study, const yaml::Node& workload,
                                   const Setting& setting, const ParallelPlan& plan);

/// The groups of device, fabric and stack alone, as a list.
nlohmann::ordered_json hardware_fields(const sweep::Study& study, const Setting& setting,
                                       const ParallelPlan& plan);

/// The text of another value of a field, as `--set KEY=` takes it.
std::string field_text(const nlohmann::ordered_json& field, double value);

}  // namespace shardscape::explorer
