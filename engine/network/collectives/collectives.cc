// Lays out collectives as messages and gates: rings in full or as turns of one gate per member, exchanges in rounds,
// dimension-wise stages, broadcasts along chains, and pipelines.
#include "engine/network/collectives/collectives.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"

namespace shardscape::network {

namespace {

/// Makes the gates of the members, for each in the order in which they open. If members have to be let in, each gate
/// waits for the one before it; otherwise messages could overtake the member's entry.
class MemberGates {
 public:
  explicit MemberGates(GroupTraffic& group) : group_(group), last_(group.entry) {}

  std::int32_t add(std::size_t member) {
    const std::int32_t gate = group_.builder.add_gate(group_.start);
    if (last_[member] != kNone) {
      group_.builder.opens(last_[member], gate);
      last_[member] = gate;
    }
    return gate;
  }

 private:
  GroupTraffic& group_;
  std::vector<std::int32_t> last_;
};

/// Adds the steps of a ring as turns of one gate per member.
void add_repeated_steps(GroupTraffic& group, const std::vector<std::size_t>& order, double step_bytes,
                        std::size_t steps) {
  TrafficBuilder& builder = group.builder;
  const std::size_t n = order.size();
  std::vector<std::int32_t> gates(n);
  for (std::size_t i = 0; i < n; ++i) {
    gates[i] =
        builder.add_repeating_gate(group.start, static_cast<std::int32_t>(steps), group.exit[order[i]]);
  }
  for (std::size_t i = 0; i < n; ++i) {
    builder.opens(group.entry[order[i]], gates[i]);
    const std::int32_t connection =
        builder.connection(group.ranks[order[i]], group.ranks[order[(i + 1) % n]]);
    builder.send(gates[i], connection, step_bytes, gates[(i + 1) % n]);
  }
}

/// Adds the steps of a ring. `order`: the members around it.
void add_ring_steps(GroupTraffic& group, const std::vector<std::size_t>& order, double step_bytes,
                    std::size_t steps) {
  TrafficBuilder& builder = group.builder;
  if (builder.layout() != TrafficLayout::in_full && steps > 1)
    return add_repeated_steps(group, order, step_bytes, steps);
  const std::size_t n = order.size();
  std::vector<std::int32_t> connections(n), gates(n), next(n);
  MemberGates members(group);
  for (std::size_t i = 0; i < n; ++i) {
    connections[i] = builder.connection(group.ranks[order[i]], group.ranks[order[(i + 1) % n]]);
    gates[i] = members.add(order[i]);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    const bool last = step + 1 == steps;
    for (std::size_t i = 0; i < n; ++i) next[i] = last ? group.exit[order[i]] : members.add(order[i]);
    for (std::size_t i = 0; i < n; ++i) builder.send(gates[i], connections[i], step_bytes, next[(i + 1) % n]);
    std::swap(gates, next);
  }
}

std::vector<std::size_t> members_in_order(std::size_t n) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// One exchange of halving-doubling: the distance to the partner, and the bytes sent.
struct Exchange {
  std::size_t distance = 1;
  double bytes = 0;
};

std::vector<Exchange> exchanges(Operation operation, HalvingOrder order, std::size_t n, double bytes) {
  const auto levels = static_cast<std::size_t>(std::countr_zero(n));
  std::vector<Exchange> halving;
  for (std::size_t k = 0; k < levels; ++k) {
    const std::size_t bit = order == HalvingOrder::far_first ? levels - 1 - k : k;
    bytes /= 2;
    halving.push_back({std::size_t{1} << bit, bytes});
  }
  std::vector<Exchange> all;
  if (operation != Operation::all_gather) all = halving;
  if (operation != Operation::reduce_scatter) all.insert(all.end(), halving.rbegin(), halving.rend());
  return all;
}

/// The lines of a box along one level, as indices of members in the group.
std::vector<std::vector<std::size_t>> lines_of(const GroupTraffic& group, const GroupBox& box,
                                               std::size_t level) {
  std::unordered_map<std::int32_t, std::size_t> member_of;
  for (std::size_t i = 0; i < group.size(); ++i) member_of.emplace(group.ranks[i], i);
  std::vector<std::int32_t> starts = {box.origin};
  for (std::size_t l = 0; l < box.levels.size(); ++l) {
    if (l == level) continue;
    const GroupBox::Level& other = box.levels[l];
    std::vector<std::int32_t> more;
    for (const std::int32_t position : other.positions) {
      for (const std::int32_t start : starts)
        more.push_back(start + (position - other.positions.front()) * other.stride);
    }
    starts = std::move(more);
  }
  const GroupBox::Level& along = box.levels[level];
  std::vector<std::vector<std::size_t>> lines;
  for (const std::int32_t start : starts) {
    lines.emplace_back();
    for (const std::int32_t position : along.positions)
      lines.back().push_back(member_of.at(start + (position - along.positions.front()) * along.stride));
  }
  return lines;
}

struct Stage {
  std::size_t level = 0;
  double bytes = 0;  ///< bytes that the ring of a line scatters or gathers
};

std::vector<Stage> stages_of(const GroupBox& box, Operation operation, double bytes) {
  std::vector<Stage> inwards;
  for (std::size_t l = 0; l < box.levels.size(); ++l) {
    inwards.push_back({l, bytes});
    bytes /= static_cast<double>(box.levels[l].positions.size());
  }
  std::vector<Stage> all;
  if (operation != Operation::all_gather) all = inwards;
  if (operation != Operation::reduce_scatter) all.insert(all.end(), inwards.rbegin(), inwards.rend());
  return all;
}

void add_ring(GroupTraffic& group, double bytes, int passes) {
  const std::size_t n = group.size();
  add_ring_steps(group, members_in_order(n), bytes / static_cast<double>(n),
                 static_cast<std::size_t>(passes) * (n - 1));
}

/// Adds several rings, each with connections of its own.
void add_channel_rings(GroupTraffic& group, const Pattern& pattern) {
  const std::size_t n = group.size();
  std::unordered_map<std::int32_t, std::size_t> member_of;
  for (std::size_t i = 0; i < n; ++i) member_of.emplace(group.ranks[i], i);
  for (const std::vector<std::int32_t>& ring :
       channel_rings(group.builder.fabric().fabric(), group.ranks, pattern.channels)) {
    std::vector<std::size_t> order;
    for (const std::int32_t rank : ring) order.push_back(member_of.at(rank));
    group.builder.begin_group();
    add_ring_steps(group, order, pattern.bytes / pattern.channels / static_cast<double>(n),
                   static_cast<std::size_t>(passes_of(pattern.operation)) * (n - 1));
  }
}

/// Adds one pass in unequal parts.
void add_exchange(GroupTraffic& group, double bytes, const Skew& skew) {
  TrafficBuilder& builder = group.builder;
  const std::size_t n = group.size();
  MemberGates members(group);
  std::vector<std::int32_t> gates(n);
  for (std::size_t i = 0; i < n; ++i) gates[i] = members.add(i);
  for (std::size_t offset = 1; offset < n; ++offset) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = (i + offset) % n;
      const double part = bytes * skew.part(i, j, n);
      if (part > 0)
        builder.send(gates[i], builder.connection(group.ranks[i], group.ranks[j]), part, group.exit[j]);
    }
  }
}

}  // namespace

void add_rings(GroupTraffic& group, const Pattern& pattern) {
  if (pattern.operation == Operation::broadcast) return add_chain_broadcast(group, pattern);
  if (pattern.ring_order == RingOrder::channels) return add_channel_rings(group, pattern);
  add_ring(group, pattern.bytes / pattern.channels, passes_of(pattern.operation));
}

void add_bidirectional_ring(GroupTraffic& group, const Pattern& pattern) {
  const std::size_t n = group.size();
  std::vector<std::size_t> order = members_in_order(n);
  for (int direction = 0; direction < 2; ++direction) {
    add_ring_steps(group, order, pattern.bytes / 2 / static_cast<double>(n),
                   static_cast<std::size_t>(passes_of(pattern.operation)) * (n - 1));
    std::ranges::reverse(order);
  }
}

void add_direct(GroupTraffic& group, const Pattern& pattern) {
  if (pattern.operation == Operation::broadcast) return add_direct_broadcast(group, pattern);
  if (pattern.operation == Operation::all_to_all) return add_exchange(group, pattern.bytes, pattern.skew);
  TrafficBuilder& builder = group.builder;
  const std::size_t n = group.size();
  const double part = pattern.bytes / static_cast<double>(n);
  const int passes = passes_of(pattern.operation);
  MemberGates members(group);
  std::vector<std::int32_t> gates(n), next(n);
  for (std::size_t i = 0; i < n; ++i) gates[i] = members.add(i);
  for (int pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    for (std::size_t i = 0; i < n; ++i) {
      next[i] = last ? group.exit[i] : members.add(i);
      if (last && pass > 0) builder.opens(gates[i], group.exit[i]);  // its own part of the sum is there, too
    }
    for (std::size_t offset = 1; offset < n; ++offset) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t j = (i + offset) % n;
        builder.send(gates[i], builder.connection(group.ranks[i], group.ranks[j]), part, next[j]);
      }
    }
    std::swap(gates, next);
  }
}

void add_halving_doubling(GroupTraffic& group, const Pattern& pattern) {
  TrafficBuilder& builder = group.builder;
  const std::size_t n = group.size();
  SHARDSCAPE_CHECK(std::has_single_bit(n), n);
  const std::vector<Exchange> steps = exchanges(pattern.operation, pattern.halving_order, n, pattern.bytes);
  // Each gate of a member counts down its next one, so that each exchange waits for all receipts before it. A member
  // that is both let in and awaited also has gates for its receipts alone: the last of them may come before it is let
  // in.
  std::vector<std::int32_t> gates(n), next(n), received(n, kNone), receipt(n);
  for (std::size_t i = 0; i < n; ++i) {
    gates[i] = builder.add_gate(group.start);
    builder.opens(group.entry[i], gates[i]);
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const bool last = s + 1 == steps.size();
    for (std::size_t i = 0; i < n; ++i) {
      const bool apart = group.entry[i] != kNone && group.exit[i] != kNone;
      next[i] = last ? group.exit[i] : builder.add_gate(group.start);
      receipt[i] = apart && !last ? builder.add_gate() : next[i];
      builder.opens(apart && last ? kNone : gates[i], next[i]);
      if (!apart) continue;
      builder.opens(received[i], receipt[i]);
      if (!last) builder.opens(receipt[i], next[i]);
      received[i] = receipt[i];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = i ^ steps[s].distance;
      builder.send(gates[i], builder.connection(group.ranks[i], group.ranks[j]), steps[s].bytes, receipt[j]);
    }
    std::swap(gates, next);
  }
}

void add_dimension_wise(GroupTraffic& group, const Pattern& pattern) {
  GroupBox box;
  const bool is_box = split_into_box(group.builder.fabric().fabric(), group.ranks, box);
  SHARDSCAPE_CHECK(is_box, group.size());
  const std::vector<Stage> stages = stages_of(box, pattern.operation, pattern.bytes);
  std::vector<std::int32_t> entry = group.entry;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const bool last = s + 1 == stages.size();
    std::vector<std::int32_t> exit = group.exit;
    // A member begins the next stage only after it has been let in, and is done only when its own part of the stages
    // before is, too.
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!last) exit[i] = group.builder.add_gate();
      if (!last || s > 0) group.builder.opens(entry[i], exit[i]);
    }
    for (const std::vector<std::size_t>& line : lines_of(group, box, stages[s].level)) {
      GroupTraffic part{group.builder, {}, {}, {}, group.start};
      for (const std::size_t member : line) {
        part.ranks.push_back(group.ranks[member]);
        part.entry.push_back(entry[member]);
        part.exit.push_back(exit[member]);
      }
      add_ring(part, stages[s].bytes, 1);
    }
    entry = std::move(exit);
  }
}

void add_pairwise(GroupTraffic& group, const Pattern& pattern) {
  TrafficBuilder& builder = group.builder;
  const std::size_t n = group.size();
  const double part = pattern.bytes / static_cast<double>(n);
  const bool exchange = pattern.partners == PairwisePartners::exclusive_or;
  SHARDSCAPE_CHECK(!exchange || std::has_single_bit(n), n);
  if (builder.layout() == TrafficLayout::compact && n > 2)
    return builder.add_pairwise_rounds(group.ranks, exchange, group.start, part, group.entry, group.exit);
  std::vector<std::int32_t> gates(n), next(n);
  for (std::size_t i = 0; i < n; ++i) {
    gates[i] = builder.add_gate(group.start);
    builder.opens(group.entry[i], gates[i]);
  }
  for (std::size_t round = 1; round < n; ++round) {
    const bool last = round + 1 == n;
    if (!last) {
      for (std::int32_t& gate : next) gate = builder.add_gate();
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = exchange ? i ^ round : (i + round) % n;
      const std::int32_t delivered = last && group.exit[j] == kNone ? kNone : builder.add_gate();
      builder.send(gates[i], builder.connection(group.ranks[i], group.ranks[j]), part, delivered);
      builder.opens(delivered, group.exit[j]);
      if (last) continue;
      builder.opens(delivered, next[i]);
      builder.opens(delivered, next[j]);
    }
    std::swap(gates, next);
  }
}

void add_pipeline(GroupTraffic& chain, const Pattern& pattern) {
  TrafficBuilder& builder = chain.builder;
  const std::size_t n = chain.size();
  std::vector<std::int32_t> hops;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    hops.push_back(builder.connection(chain.ranks[i], chain.ranks[i + 1]));
  }
  std::int32_t injection = kNone;
  for (std::int32_t microbatch = 0; microbatch < pattern.microbatches; ++microbatch) {
    if (injection == kNone || pattern.interval > 0) {
      injection = builder.add_gate(pattern.start + microbatch * pattern.interval);
      builder.opens(chain.entry[0], injection);
    }
    std::int32_t gate = injection;
    for (std::size_t hop = 0; hop + 1 < n; ++hop) {
      const std::size_t receiver = hop + 1;
      if (receiver + 1 == n) {
        builder.send(gate, hops[hop], pattern.bytes, chain.exit[receiver]);
        break;
      }
      const std::int32_t forward = builder.add_gate(0, pattern.compute);
      builder.opens(chain.entry[receiver], forward);
      std::int32_t arrival = forward;
      if (chain.exit[receiver] != kNone) {
        arrival = builder.add_gate();
        builder.opens(arrival, forward);
        builder.opens(arrival, chain.exit[receiver]);
      }
      builder.send(gate, hops[hop], pattern.bytes, arrival);
      gate = forward;
    }
  }
}

}  // namespace shardscape::network
