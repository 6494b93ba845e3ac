// Small fabrics of every kind, and a router written from the rules alone.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/settings.h"

namespace shardscape::test {

inline constexpr std::int32_t kSwitch = -1;  ///< any switch, in a route of the independent router

inline std::string describe(const FabricSpec& spec) {
  std::string text;
  for (const DimensionSpec& d : spec.dimensions) {
    text += std::string(name_of(d.kind)) + "(";
    for (const std::int64_t extent : d.shape) text += std::to_string(extent) + " ";
    text += ") ";
  }
  return text;
}

inline std::vector<FabricSpec> assorted_fabrics() {
  using enum DimensionKind;
  std::vector<FabricSpec> all;
  for (const std::int64_t n : {2, 3, 4, 5, 8}) {
    for (const DimensionKind kind : {ring, mesh, fully_connected, switched}) {
      all.push_back(fabric({dimension("d", kind, {n})}));
    }
  }
  all.push_back(fabric({dimension("t", torus, {4, 4})}));
  all.push_back(fabric({dimension("t", torus, {2, 5})}));
  all.push_back(fabric({dimension("t", torus, {3, 2, 4})}));
  all.push_back(fabric({dimension("t", torus, {1, 4})}));
  all.push_back(fabric({dimension("m", mesh, {3, 4})}));
  all.push_back(fabric({dimension("m", mesh, {2, 3, 2})}));
  all.push_back(fabric({dimension("t", torus, {4, 4}), dimension("r", ring, {4}, 25e9, 2e-6)}));
  all.push_back(fabric({dimension("s", switched, {4}), dimension("o", switched, {3}, 25e9, 2e-6)}));
  all.push_back(fabric({dimension("f", fully_connected, {4}), dimension("m", mesh, {3})}));
  all.push_back(fabric(
      {dimension("r", ring, {3}), dimension("f", fully_connected, {3}), dimension("s", switched, {2})}));
  return all;
}

/// The ranks (and kSwitch) that a message visits: lowest dimension first, lowest axis first; rings the
/// shorter way, exactly half way in the + direction; meshes straight; fully connected direct; switches up and
/// down.
inline std::vector<std::int32_t> expected_route(const FabricSpec& spec, std::int32_t source,
                                                std::int32_t destination) {
  std::vector<std::int32_t> route = {source};
  std::int32_t here = source, stride = 1;
  for (const DimensionSpec& d : spec.dimensions) {
    for (const std::int64_t extent : d.shape) {
      const auto n = static_cast<std::int32_t>(extent);
      const auto coordinate = [&](std::int32_t rank) { return rank / stride % n; };
      const std::int32_t goal = coordinate(destination);
      const auto move_to = [&](std::int32_t c) {
        here += (c - coordinate(here)) * stride;
        route.push_back(here);
      };
      const bool wraps = d.kind == DimensionKind::ring || d.kind == DimensionKind::torus;
      if (wraps || d.kind == DimensionKind::mesh) {
        std::int32_t up = 0;  // steps in the + direction until the goal
        while ((coordinate(here) + up) % n != goal) ++up;
        const bool plus = wraps ? up <= n - up : goal > coordinate(here);
        while (coordinate(here) != goal) move_to((coordinate(here) + (plus ? 1 : n - 1)) % n);
      } else if (coordinate(here) != goal) {
        if (d.kind == DimensionKind::switched) route.push_back(kSwitch);
        move_to(goal);
      }
      stride *= n;
    }
  }
  return route;
}

}  // namespace shardscape::test
