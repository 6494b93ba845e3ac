#include "sweep/validate/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/network/fabric/fabric.h"

namespace shardscape::validate {

namespace {

/// Number of GPUs in one node: the product of the scale-up dimensions.
std::int64_t node_size(const FabricSpec& fabric) {
  std::int64_t gpus = 1;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.scope != LinkScope::scale_up) break;
    gpus *= std::max<std::int64_t>(1, dimension.size());
  }
  return gpus;
}

}  // namespace

/// A machine with the prices that refer to its parts.
class CollectiveBenches::Bench {
 public:
  Bench(FabricSpec spec, const StackProfile& stack, const DeviceSpec& device, network::RankGroup group)
      : spec_(std::move(spec)),
        node_(device.node),
        fabric_(spec_),
        prices_({fabric_, stack.communication, device.hbm_peak(), &node_}),
        group_(group) {}

  double time(network::CollectiveOp operation, double bytes) {
    return prices_.time({operation, Bytes(bytes), group_}).value();
  }

 private:
  FabricSpec spec_;
  NodeCollectives node_;
  network::Fabric fabric_;
  network::CollectivePrices prices_;
  network::RankGroup group_;
};

CollectiveBenches::CollectiveBenches(Presets& presets, std::filesystem::path folder)
    : presets_(presets), folder_(std::move(folder)) {}
CollectiveBenches::~CollectiveBenches() = default;

tl::expected<double, std::vector<RowRefusal>> CollectiveBenches::time(const BenchGroup& group,
                                                                      network::CollectiveOp operation,
                                                                      double bytes) {
  auto known = benches_.find(group);
  if (known == benches_.end()) {
    auto bench = make(group);
    if (!bench) return tl::unexpected(std::move(bench.error()));
    known = benches_.emplace(group, std::move(*bench)).first;
  }
  return known->second->time(operation, bytes);
}

tl::expected<std::unique_ptr<CollectiveBenches::Bench>, std::vector<RowRefusal>> CollectiveBenches::make(
    const BenchGroup& group) {
  const auto cluster = presets_.cluster(group.cluster, folder_);
  const auto stack = presets_.stack(group.stack, folder_);
  SHARDSCAPE_CHECK(cluster && stack, group.cluster, group.stack);
  const std::int64_t node = node_size((*cluster)->fabric.fabric);
  const std::int64_t nodes = group.gpus / group.per_node;
  std::vector<RowRefusal> refusals;
  if (group.per_node > node) {
    refusals.push_back(
        {"gpus_per_node", fmt::format("a node of cluster {} has {} GPUs", group.cluster, node)});
    return tl::unexpected(std::move(refusals));
  }
  Problems problems;
  FabricSpec fabric = (*cluster)->fabric.instantiate(nodes == 1 ? group.gpus : nodes * node, problems);
  for (const Problem& problem : problems.list()) refusals.push_back({"gpus", problem.message});
  if (!refusals.empty()) return tl::unexpected(std::move(refusals));
  network::RankGroup ranks;
  ranks.push(static_cast<std::int32_t>(group.per_node), 1);
  ranks.push(static_cast<std::int32_t>(nodes), static_cast<std::int32_t>(node));
  return std::make_unique<Bench>(std::move(fabric), **stack, (*cluster)->device, ranks);
}

}  // namespace shardscape::validate
