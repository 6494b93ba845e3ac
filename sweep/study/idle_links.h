// Links of a device that do not count.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/spec/scenario.h"

namespace shardscape::sweep {

/// A line for each of the named devices whose links have no effect, as the innermost dimension of its cluster states
/// another bandwidth itself.
std::vector<std::string> idle_links(const std::vector<System>& systems, const std::set<std::string>& devices);

/// What is wrong where the device of a cluster that has its bandwidth by the links of its own has been given other
/// links, which do not change it; empty where nothing is.
std::string links_left_behind(const std::vector<System>& systems);

}  // namespace shardscape::sweep
