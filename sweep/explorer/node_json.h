// Trees of YAML files as JSON, for a page that has no reader of YAML: scalars are texts, those in quotes begin with an
// apostrophe.
#pragma once

#include <nlohmann/json.hpp>

#include "sweep/yaml/node.h"

namespace shardscape::explorer {

/// The tree without places; keys that stand twice keep their last value.
nlohmann::ordered_json to_json(const yaml::Node& node);

/// The tree again; numbers and truth values become scalars as YAML writes them. Lists of scalars are marked `flow`.
yaml::Node from_json(const nlohmann::ordered_json& json, const yaml::Location& where);

}  // namespace shardscape::explorer
