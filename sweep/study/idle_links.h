// Links of a device's data sheet that do not count.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/spec/scenario.h"

namespace shardscape::sweep {

/// A line for each of the named devices whose links have no effect, as the innermost dimension of its cluster states
/// another bandwidth itself.
std::vector<std::string> idle_links(const std::vector<System>& systems, const std::set<std::string>& devices);

}  // namespace shardscape::sweep
