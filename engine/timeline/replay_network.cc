// Chooses an algorithm for each collective of a trace (that of HealthyCosts for groups that tile the machine, else
// the fastest alone), and adds its messages and the stack's costs to the traffic.
#include "engine/timeline/replay_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/network/fabric/step_latency.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"
#include "engine/timeline/collective_kind.h"

namespace shardscape::timeline {

namespace {

using network::Algorithm;
using network::CollectiveOp;
using network::GroupTraffic;
using network::Operation;
using network::Pattern;
using network::RingOrder;

/// Bytes of the whole buffer, which network/collectives/patterns.h counts, however it lies on the ranks.
double whole_bytes(const CollectiveInstance& collective, std::size_t ranks) {
  const bool shares = collective.kind == CollectiveKind::all_gather;
  return shares ? collective.bytes * static_cast<double>(ranks) : collective.bytes;
}

/// The group with its members in another order.
GroupTraffic reordered(const GroupTraffic& group, const std::vector<std::int32_t>& ranks) {
  GroupTraffic result{group.builder, ranks, {}, {}, group.start};
  for (const std::int32_t rank : ranks) {
    const auto i = static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
    result.entry.push_back(group.entry[i]);
    result.exit.push_back(group.exit[i]);
  }
  return result;
}

enum class Star : std::uint8_t { gather, scatter };
/// Every member sends its part to the root, or the root sends every member its part.
void add_star(GroupTraffic& group, double part, Star way) {
  for (std::size_t i = 1; i < group.size(); ++i) {
    const std::size_t from = way == Star::gather ? i : 0, to = way == Star::gather ? 0 : i;
    group.builder.send(group.entry[from], group.builder.connection(group.ranks[from], group.ranks[to]), part,
                       group.exit[to]);
  }
}

}  // namespace

std::optional<network::RankGroup> as_lattice(std::span<const std::int32_t> ranks, std::int32_t machine) {
  network::RankGroup group;
  std::size_t block = 1;  // number of members within the levels so far
  while (block < ranks.size()) {
    if (group.depth == static_cast<std::int32_t>(kPlanAxes)) return std::nullopt;
    const std::int32_t stride = ranks[block] - ranks[0];
    std::size_t extent = 1;
    while ((extent + 1) * block <= ranks.size() &&
           ranks[extent * block] == ranks[0] + static_cast<std::int32_t>(extent) * stride) {
      ++extent;
    }
    if (stride <= 0 || extent == 1 || ranks.size() % (extent * block) != 0) return std::nullopt;
    if (machine % (stride * static_cast<std::int32_t>(extent)) != 0) return std::nullopt;
    if (ranks[0] / stride % static_cast<std::int32_t>(extent) != 0) return std::nullopt;
    group.levels[static_cast<std::size_t>(group.depth++)] = {static_cast<std::int32_t>(extent), stride};
    block *= extent;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::int32_t rank = ranks[0];
    auto index = static_cast<std::int32_t>(i);
    for (std::int32_t l = 0; l < group.depth; ++l) {
      const network::RankGroup::Level& level = group.levels[static_cast<std::size_t>(l)];
      rank += index % level.extent * level.stride;
      index /= level.extent;
    }
    if (rank != ranks[i]) return std::nullopt;
  }
  return group;
}

ReplayNetwork::ReplayNetwork(const network::Fabric& fabric, const StackProfile::Communication& stack,
                             BytesPerSecond memory_rate, const NodeCollectives& node, const FaultSet& faults)
    : stack_(stack),
      network_(fabric, stack),
      healthy_(fabric, stack),
      model_({fabric, stack, memory_rate, &node}) {
  network_.set_faults(faults);
  for (const DeviceFault& fault : faults.devices)
    memory_share_.try_emplace(fault.rank, 1).first->second *= fault.hbm_share;
}

const ReplayNetwork::Choice& ReplayNetwork::choose(const CollectiveInstance& collective,
                                                   const std::vector<std::int32_t>& ranks) {
  const auto [entry, fresh] = choices_.try_emplace({collective.group, collective.kind, collective.bytes});
  if (!fresh) return entry->second;
  Pattern& pattern = entry->second.pattern;
  pattern.operation = row_of(collective.kind).operation;
  pattern.bytes = whole_bytes(collective, ranks.size());
  const std::optional<CollectiveOp> op = row_of(collective.kind).priced;
  const auto lattice = as_lattice(ranks, network_.fabric().ranks());
  const auto choice = op && lattice ? model_.choice({*op, Bytes(pattern.bytes), *lattice}) : std::nullopt;
  if (choice) {
    pattern.algorithm = choice->algorithm;
    pattern.ring_order = choice->ring_order;
    pattern.channels = choice->channels;
    pattern.chunks = network::chunks_of(pattern.operation, pattern.algorithm, pattern.bytes);
    entry->second.beyond_links = model_.beyond_links(*op, Bytes(pattern.bytes), *lattice);
  } else if (op) {
    pattern.groups = {ranks};
    pattern = fastest_alone(pattern, channels_of(collective, ranks));
    pattern.groups.clear();
  } else if (collective.kind == CollectiveKind::reduce) {
    pattern.algorithm = Algorithm::ring;
    pattern.chunks = network::chunks_of(pattern.operation, pattern.algorithm, pattern.bytes);
  }
  return entry->second;
}

Pattern ReplayNetwork::fastest_alone(Pattern pattern, std::int32_t channels) {
  Pattern best = pattern;
  best.algorithm = pattern.operation == Operation::all_to_all ? Algorithm::direct : Algorithm::ring;
  best.chunks = network::chunks_of(best.operation, best.algorithm, best.bytes);
  double least = std::numeric_limits<double>::infinity();
  pattern.rank_steps = true;  // as add_step_latency() adds them to all messages
  const auto offer = [&] {
    if (!network::check_patterns({pattern}, healthy_.routes()).empty()) return;
    const auto time = healthy_.simulate(pattern);
    const auto n = static_cast<std::int32_t>(pattern.groups[0].size());
    const Seconds copies = model_.copy_time(pattern.operation, pattern.algorithm, Bytes(pattern.bytes), n);
    const double total = time.value_or(std::numeric_limits<double>::infinity()) + copies.value();
    if (total >= least) return;
    least = total;
    best = pattern;
  };
  for (const Algorithm algorithm : stack_.algorithms) {
    if (!network::supports(pattern.operation, algorithm)) continue;
    pattern.algorithm = algorithm;
    pattern.chunks = network::chunks_of(pattern.operation, algorithm, pattern.bytes);
    offer();
    if (algorithm != Algorithm::ring || channels == 0 || pattern.operation == Operation::broadcast) continue;
    pattern.ring_order = RingOrder::channels;
    pattern.channels = channels;
    offer();
    pattern.ring_order = RingOrder::listed;
    pattern.channels = 1;
  }
  best.rank_steps = false;
  return best;
}

std::int32_t ReplayNetwork::channels_of(const CollectiveInstance& collective,
                                        std::span<const std::int32_t> ranks) {
  const auto [known, fresh] = channels_.try_emplace(collective.group, 0);
  if (!fresh) return known->second;
  const auto has = [&](Algorithm algorithm) {
    return std::ranges::find(stack_.algorithms, algorithm) != stack_.algorithms.end();
  };
  if (!has(Algorithm::ring)) return 0;
  network::GroupBox box;
  const network::Fabric& fabric = network_.fabric();
  if (has(Algorithm::dimension_wise) && split_into_box(fabric, ranks, box) && box.levels.size() > 1) return 0;
  return known->second = network::most_channels(fabric, ranks);
}

void ReplayNetwork::add(network::TrafficBuilder& builder, const CollectiveInstance& collective,
                        const std::vector<std::int32_t>& ranks, const std::vector<std::int32_t>& entry,
                        const std::vector<std::int32_t>& exit, const std::vector<std::int32_t>& before) {
  for (std::size_t i = 0; i < ranks.size(); ++i) builder.opens(entry[i], exit[i]);
  if (ranks.size() == 1) return;
  GroupTraffic group{builder, ranks, entry, exit, 0};
  const double n = static_cast<double>(ranks.size());
  switch (collective.kind) {
    case CollectiveKind::gather:
      return add_star(group, collective.bytes, Star::gather);
    case CollectiveKind::scatter:
      return add_star(group, collective.bytes / n, Star::scatter);
    case CollectiveKind::barrier: {
      Pattern all_reduce;
      all_reduce.bytes = 1;
      return network::add_double_binary_tree(group, all_reduce);
    }
    default:
      break;
  }
  const auto& [pattern, beyond_links] = choose(collective, ranks);
  const Seconds copies = model_.copy_time(pattern.operation, pattern.algorithm, Bytes(pattern.bytes),
                                          static_cast<std::int32_t>(ranks.size()));
  if (copies + beyond_links > Seconds(0)) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto slow = memory_share_.find(ranks[i]);
      const double share = slow == memory_share_.end() ? 1 : slow->second;
      const std::int32_t copied =
          builder.add_gate(0, std::max(copies.value() / share, (copies + beyond_links).value()));
      builder.opens(entry[i], copied);
      builder.opens(copied, exit[i]);
      if (!before.empty()) builder.opens(before[i], copied);
      group.entry[i] = copied;
    }
  }
  if (collective.kind == CollectiveKind::reduce) {
    GroupTraffic towards_root = reordered(group, {ranks.rbegin(), ranks.rend()});
    return network::add_collective(towards_root, pattern);
  }
  if (pattern.ring_order == RingOrder::hamiltonian) {
    GroupTraffic turned = reordered(group, network::ring_order(network_.fabric(), ranks));
    return network::add_collective(turned, pattern);
  }
  network::add_collective(group, pattern);
}

double ReplayNetwork::message_count(const CollectiveInstance& collective,
                                    std::span<const std::int32_t> ranks) {
  const double n = static_cast<double>(ranks.size());
  const double rings = std::max(1, channels_of(collective, ranks));
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return 2 * rings * n * (n - 1);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather:
      return rings * n * (n - 1);
    case CollectiveKind::all_to_all:
      return n * (n - 1);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return n * network::chunks_of(Operation::broadcast, Algorithm::ring, collective.bytes);
    default:
      return 4 * n;
  }
}

double ReplayNetwork::messages_in_memory(const CollectiveInstance& collective,
                                         std::span<const std::int32_t> ranks) {
  const bool direct =
      std::ranges::find(stack_.algorithms, network::Algorithm::direct) != stack_.algorithms.end();
  const double n = static_cast<double>(ranks.size());
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::reduce_scatter_block:
    case CollectiveKind::all_gather:
      // Halving-doubling has one message per rank and exchange in each pass; rings have fewer.
      return direct ? n * (n - 1) * (collective.kind == CollectiveKind::all_reduce ? 2 : 1)
                    : 2 * n * std::ceil(std::log2(n));
    default:
      return message_count(collective, ranks);
  }
}

void ReplayNetwork::add_step_latency(network::Traffic& traffic) const {
  for (network::Connection& connection : traffic.connections) {
    const auto path = std::span(traffic.path_links)
                          .subspan(static_cast<std::size_t>(connection.path_begin),
                                   static_cast<std::size_t>(connection.path_end - connection.path_begin));
    connection.latency += network::step_latency(network_.fabric(), stack_, path);
  }
}

}  // namespace shardscape::timeline
