// Links of a device that do not count.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/spec/scenario.h"
#include "sweep/yaml/loader.h"

namespace shardscape::sweep {

/// A line for each of the named devices whose links have no effect, as the innermost dimension of its cluster states
/// another bandwidth itself.
std::vector<std::string> idle_links(const std::vector<System>& systems, const std::set<std::string>& devices,
                                    const yaml::LinkedFabrics& linked);

/// What is wrong where the device of a cluster in `linked` has been given other links than the cluster has the
/// bandwidth of, which an axis of devices does not change; empty where nothing is.
std::string links_left_behind(const std::vector<System>& systems, const yaml::LinkedFabrics& linked);

}  // namespace shardscape::sweep
