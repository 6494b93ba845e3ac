// Appends a wire to a route.
#pragma once

#include <cstdint>
#include <vector>

namespace shardscape::network {

/// As path.push_back(wire), where the wire has a name: for a value without one g++ makes each push a call, and routes
/// are most of what a large fabric costs.
inline void append_wire(std::vector<std::int32_t>& path, const std::int32_t wire) { path.push_back(wire); }

}  // namespace shardscape::network
