#include "engine/step/context_drift.h"

#include <algorithm>

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::RankGroup;

/// Members of the group that scale-up links join, where every domain has as many; else 1.
std::int32_t inside_domain(const FabricSpec& fabric, const RankGroup& group) {
  std::int64_t domain = 1;
  auto dimension = fabric.dimensions.begin();
  for (; dimension != fabric.dimensions.end() && dimension->scope == LinkScope::scale_up; ++dimension)
    domain *= dimension->size();
  const bool leaves = std::all_of(dimension, fabric.dimensions.end(),
                                  [](const DimensionSpec& d) { return d.scope == LinkScope::scale_out; });
  if (!leaves || group.depth != 1 || group.mirror.extent != 1) return 1;
  const auto [extent, stride] = group.levels.front();
  const std::int64_t inside = domain / stride;
  return domain % stride == 0 && inside > 0 && extent % inside == 0 ? static_cast<std::int32_t>(inside) : 1;
}

/// How many members that follow each other in the context group hold experts together, from the first on.
std::int32_t together(const RankGroup& experts, const RankGroup::Level& context) {
  std::int32_t last = 0;  // the member of the first group with the highest place along the axis
  for (std::int32_t l = 0; l < experts.depth; ++l) {
    const auto [extent, stride] = experts.levels[static_cast<std::size_t>(l)];
    for (std::int32_t i = 1; i < extent; ++i) {
      const std::int32_t place = i * stride / context.stride % context.extent;
      last = std::max(last, place);
    }
  }
  return last + 1;
}

}  // namespace

Seconds spared_by_drift(const TrainingStep& in, const model::CollectiveCall& call,
                        const network::RankGroups& groups, network::CollectiveModel& collectives) {
  const RankGroup& group = groups[call.group];
  if (call.op != CollectiveOp::ring_pass) return Seconds(0);
  const std::int32_t inside = inside_domain(in.setting.system.fabric, group);
  if (inside == 1) return Seconds(0);
  const std::int32_t apart = in.key().dispatches
                                 ? inside - together(groups[ParallelGroup::expert], group.levels.front())
                                 : inside - 1;
  if (apart < 1 || call.repeats + 1 != group.size()) return Seconds(0);
  RankGroup near = group;
  near.levels.front().extent = inside;
  const Seconds outside = collectives.time_without_faults(call.op, call.bytes, group) -
                          collectives.time_without_faults(call.op, call.bytes, near);
  return static_cast<double>(apart) * std::max(Seconds(0), outside);
}

}  // namespace shardscape::step
