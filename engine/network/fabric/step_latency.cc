#include "engine/network/fabric/step_latency.h"

#include <algorithm>

namespace shardscape::network {

double step_latency(const Fabric& fabric, const StackProfile::Communication& communication,
                    std::span<const std::int32_t> path) {
  if (path.empty()) return 0;
  const auto link = [&](std::int32_t id) -> const Link& {
    return fabric.links()[static_cast<std::size_t>(id)];
  };
  if (link(path.front()).source >= fabric.ranks() && link(path.back()).destination >= fabric.ranks())
    return 0;
  const bool far = std::ranges::any_of(path, [&](std::int32_t id) {
    const auto dimension = static_cast<std::size_t>(link(id).dimension);
    return fabric.spec().dimensions[dimension].scope == LinkScope::scale_out;
  });
  const bool own = far && communication.rank_step_scale_out > Seconds(0);
  return (own ? communication.rank_step_scale_out : communication.rank_step).value();
}

}  // namespace shardscape::network
