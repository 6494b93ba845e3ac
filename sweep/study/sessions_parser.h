// Reads `sessions:` of a workload: how many turns they have, how long users think, and what a turn adds.
#pragma once

#include <optional>
#include <string>

#include "engine/spec/model.h"
#include "engine/spec/request_load.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// Lengths that are written as a number, uniform from `ratio` of it where that is below 1, or as a map (load_parser.h).
/// Problems go to `state`.
std::optional<Lengths> parse_number_or_lengths(const yaml::Node& node, const std::string& path, double ratio,
                                               yaml::ReadState& state);

/// The sessions, without their first prompt. `length_ratio`: the client's, for new tokens that are written as a number.
/// They end where positions of `model` do, where that is given and learned. Problems go to `state`.
Sessions parse_sessions(const yaml::Node& node, const std::string& path, double length_ratio,
                        const ModelSpec* model, yaml::ReadState& state);

}  // namespace shardscape::sweep
