#include "engine/trace/replay_network.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"
#include "engine/network/ring_order.h"

namespace shardscape::trace {

namespace {

using network::Algorithm;
using network::GroupTraffic;
using network::Operation;

/// The bytes of network/patterns.h: the whole buffer, whoever holds it.
double whole_bytes(const CollectiveInstance& collective, std::size_t ranks) {
  const bool shares = collective.kind == CollectiveKind::all_gather;
  return shares ? collective.bytes * static_cast<double>(ranks) : collective.bytes;
}

Operation operation_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return Operation::all_gather;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
      return Operation::reduce_scatter;
    default:
      return Operation::all_reduce;
  }
}

GroupTraffic reversed(GroupTraffic group) {
  std::ranges::reverse(group.ranks);
  std::ranges::reverse(group.entry);
  std::ranges::reverse(group.exit);
  return group;
}

/// Every member sends the root (or the root every member) its part.
void add_to_or_from_root(GroupTraffic& group, double part, bool to_root) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t from = to_root ? i : 0, to = to_root ? 0 : i;
    group.builder.send(group.entry[from], group.builder.connection(group.ranks[from], group.ranks[to]), part,
                       group.exit[to]);
  }
}

void add_rooted(GroupTraffic& group, Algorithm algorithm, double bytes, std::int32_t chunks, bool reduce) {
  if (algorithm == Algorithm::direct) {
    if (reduce) return add_to_or_from_root(group, bytes, true);
    return network::add_direct_broadcast(group, bytes);
  }
  if (algorithm == Algorithm::binary_tree) return network::add_binary_tree_broadcast(group, bytes, chunks);
  if (!reduce) return network::add_chain_broadcast(group, bytes, chunks);
  GroupTraffic towards_root = reversed(group);
  network::add_chain_broadcast(towards_root, bytes, chunks);
}

}  // namespace

ReplayNetwork::ReplayNetwork(network::FaultyFabric& routes, const StackProfile::Communication* stack)
    : routes_(routes), healthy_(routes.fabric()) {
  const network::Fabric& fabric = routes.fabric();
  double nodes = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    if (dimension.scope == LinkScope::scale_out) nodes *= static_cast<double>(dimension.size());
  }
  double up = 1, out = 1;
  if (stack != nullptr) {
    call_ = stack->call.value();
    step_ = stack->rank_step.value();
    step_scale_out_ = stack->rank_step_scale_out > Seconds(0) ? stack->rank_step_scale_out.value() : step_;
    up = stack->scale_up_fraction;
    out = stack->scale_out_fraction * std::pow(stack->scale_out_scaling, std::max(0.0, std::log2(nodes) - 1));
  }
  for (std::size_t link = 0; link < fabric.links().size(); ++link) {
    const auto dimension = static_cast<std::size_t>(fabric.links()[link].dimension);
    const double share = fabric.spec().dimensions[dimension].scope == LinkScope::scale_up ? up : out;
    bytes_per_second_.push_back(share * routes.bytes_per_second()[link]);
    healthy_bytes_per_second_.push_back(share * healthy_.bytes_per_second()[link]);
  }
}

std::vector<ReplayNetwork::Choice> ReplayNetwork::candidates(CollectiveKind kind,
                                                             std::span<const std::int32_t> ranks) const {
  std::vector<Choice> list;
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather: {
      list.push_back({Algorithm::ring, 1});
      network::GroupBox box;
      if (network::split_into_box(routes_.fabric(), ranks, box) && box.levels.size() > 1) {
        list.push_back({Algorithm::dimension_wise, 1});
      }
      return list;
    }
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      list.push_back({Algorithm::direct, 1});
      for (std::int32_t chunks = 1; chunks <= 64; chunks *= 4) {
        list.push_back({Algorithm::ring, chunks});
        // Messages run down the trees of patterns.h only.
        if (kind == CollectiveKind::broadcast) list.push_back({Algorithm::binary_tree, chunks});
      }
      return list;
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return {{Algorithm::direct, 1}};
    case CollectiveKind::barrier:
      break;
  }
  return {{Algorithm::double_binary_tree, 1}};
}

void ReplayNetwork::add_messages(GroupTraffic group, const CollectiveInstance& collective,
                                 const Choice& choice) {
  const double n = static_cast<double>(group.size());
  const double bytes = whole_bytes(collective, group.size());
  const int passes = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather:
      if (choice.algorithm == Algorithm::ring) return network::add_ring(group, bytes, passes);
      return network::add_dimension_wise(group, operation_of(collective.kind), bytes);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return add_rooted(group, choice.algorithm, bytes, choice.chunks,
                        collective.kind == CollectiveKind::reduce);
    case CollectiveKind::all_to_all:
      return network::add_direct(group, bytes, 1);
    case CollectiveKind::gather:
      return add_to_or_from_root(group, bytes, true);
    case CollectiveKind::scatter:
      return add_to_or_from_root(group, bytes / n, false);
    case CollectiveKind::barrier:
      break;
  }
  network::add_double_binary_tree(group, Operation::all_reduce, 0, 1);
}

const ReplayNetwork::Choice& ReplayNetwork::choose(const CollectiveInstance& collective,
                                                   const std::vector<std::int32_t>& ranks) {
  const auto [entry, fresh] = choices_.try_emplace({collective.group, collective.kind, collective.bytes});
  if (!fresh) return entry->second;
  const std::vector<Choice> list = candidates(collective.kind, ranks);
  entry->second = list.front();
  if (list.size() == 1) return entry->second;
  double best = time_alone(collective, ranks, list.front());
  for (std::size_t i = 1; i < list.size(); ++i) {
    const double time = time_alone(collective, ranks, list[i]);
    if (time >= best * (1 - 1e-9)) continue;
    best = time;
    entry->second = list[i];
  }
  return entry->second;
}

double ReplayNetwork::time_alone(const CollectiveInstance& collective, const std::vector<std::int32_t>& ranks,
                                 const Choice& choice) {
  network::TrafficBuilder builder(healthy_);
  builder.begin_group();
  GroupTraffic group{builder, ranks, {}, {}, 0};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    group.entry.push_back(builder.add_gate());
    group.exit.push_back(builder.add_gate());
  }
  add_messages(group, collective, choice);
  network::Traffic traffic = builder.finish().first;
  add_step_latency(traffic);
  return simulator_.run(traffic, healthy_bytes_per_second_).completion_time;
}

void ReplayNetwork::add(network::TrafficBuilder& builder, const CollectiveInstance& collective,
                        const std::vector<std::int32_t>& ranks, const std::vector<std::int32_t>& entry,
                        const std::vector<std::int32_t>& exit) {
  for (std::size_t i = 0; i < ranks.size(); ++i) builder.opens(entry[i], exit[i]);
  if (ranks.size() == 1) return;
  add_messages({builder, ranks, entry, exit, 0}, collective, choose(collective, ranks));
}

double ReplayNetwork::message_count(const CollectiveInstance& collective,
                                    const std::vector<std::int32_t>& ranks) {
  const double n = static_cast<double>(ranks.size());
  if (n == 1) return 0;
  const double passes = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return passes * n * (n - 1);  // the most of any candidate
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return 64 * n;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return n;
    case CollectiveKind::barrier:
      break;
  }
  return 4 * n;
}

void ReplayNetwork::add_step_latency(network::Traffic& traffic) const {
  if (step_ == 0 && step_scale_out_ == 0) return;
  const network::Fabric& fabric = routes_.fabric();
  for (network::Connection& connection : traffic.connections) {
    if (connection.path_begin == connection.path_end || connection.source >= fabric.ranks()) continue;
    bool far = false;
    for (std::int32_t i = connection.path_begin; i < connection.path_end && !far; ++i) {
      const auto link = static_cast<std::size_t>(traffic.path_links[static_cast<std::size_t>(i)]);
      const auto dimension = static_cast<std::size_t>(fabric.links()[link].dimension);
      far = fabric.spec().dimensions[dimension].scope == LinkScope::scale_out;
    }
    connection.latency += far ? step_scale_out_ : step_;
  }
}

}  // namespace shardscape::trace
