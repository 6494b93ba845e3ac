#include "engine/execution/lone_rings.h"

#include <algorithm>
#include <limits>

namespace shardscape::execution {

namespace {

constexpr std::size_t place(std::int32_t index) { return static_cast<std::size_t>(index); }

/// The gate of a member that opens repeatedly: the first such gate behind its entry, with only gates between that send
/// nothing.
std::int32_t turning_gate(const CallTraffic& call, std::int32_t entry) {
  std::int32_t gate = entry;
  for (std::size_t hops = 0; gate != kNone && hops <= call.gates.size(); ++hops) {
    const CallTraffic::Gate& g = call.gates[place(gate)];
    if (g.waiting != 1) return kNone;
    if (g.times > 1) return gate;
    if (g.messages != 0 || g.leaves != kNone) return kNone;
    gate = g.next_gate;
  }
  return kNone;
}

}  // namespace

/// Bytes per second of each connection that has all its links to itself; 0 for others.
std::vector<double> LoneRings::lone_rates(std::span<const double> link_bytes_per_second) const {
  const network::Traffic& wires = programs_->wires;
  std::vector<std::int32_t> users(link_bytes_per_second.size(), 0);
  for (const std::int32_t link : wires.path_links) ++users[place(link)];
  std::vector<double> rates;
  rates.reserve(wires.connections.size());
  for (const network::Connection& wire : wires.connections) {
    double narrowest = std::numeric_limits<double>::infinity();
    bool lone = wire.path_begin != wire.path_end;
    for (const std::int32_t link : wires.path(wire)) {
      narrowest = std::min(narrowest, link_bytes_per_second[place(link)]);
      lone = lone && users[place(link)] == 1;
    }
    rates.push_back(lone ? narrowest : 0);
  }
  return rates;
}

/// Reads the ring of a call; false where the call is not one ring of all members over connections of their own.
bool LoneRings::find_ring(const Communicator& group, const CallTraffic& call, const network::Traffic& wires,
                          std::span<const double> lone_rate, Ring& ring) {
  const std::size_t n = group.ranks.size();
  std::vector<std::int32_t> gate_of(n), member_of(call.gates.size(), kNone);
  for (std::size_t m = 0; m < n; ++m) {
    const std::int32_t gate = turning_gate(call, call.entry[m]);
    if (gate == kNone || member_of[place(gate)] != kNone) return false;
    gate_of[m] = gate;
    member_of[place(gate)] = static_cast<std::int32_t>(m);
  }
  std::int64_t messages = 0;
  for (const CallTraffic::Gate& gate : call.gates) messages += gate.messages;
  if (messages != static_cast<std::int64_t>(n)) return false;

  ring.steps = call.gates[place(gate_of[0])].times;
  if (ring.steps + 1 < static_cast<std::int64_t>(n)) return false;
  std::int32_t member = 0;
  std::vector<std::int32_t> connections;
  for (std::size_t hop = 0; hop < n; ++hop) {
    const CallTraffic::Gate& gate = call.gates[place(gate_of[place(member)])];
    const CallTraffic::Gate& exit = call.gates[place(call.exit[place(member)])];
    if (gate.times != ring.steps || gate.messages != 1 || gate.next_gate != call.exit[place(member)])
      return false;
    if (exit.waiting != 2 || exit.times != 1 || exit.messages != 0 || exit.next_gate != kNone) return false;
    const network::Message& message = call.messages[place(gate.first_message)];
    const double rate = lone_rate[place(message.connection)];
    if (rate <= 0 || message.gate == kNone) return false;
    connections.push_back(message.connection);
    ring.hops.push_back({message.bytes / rate, wires.connections[place(message.connection)].latency, member,
                         message.connection});
    member = member_of[place(message.gate)];
    if (member == kNone || (member == 0) != (hop + 1 == n)) return false;
  }
  std::ranges::sort(connections);
  return std::ranges::adjacent_find(connections) == connections.end();
}

void LoneRings::reset(const Programs& programs, std::span<const double> link_bytes_per_second) {
  programs_ = &programs;
  const std::vector<double> lone_rate = lone_rates(link_bytes_per_second);
  // The calls of one lane run one after the other, but calls of two lanes would mix on a connection.
  std::vector<std::int32_t> lane_of(programs.communicators.size(), kNone);
  std::vector<char> one_lane(programs.communicators.size(), 1);
  for (std::int32_t lane = 0; lane < programs.lanes; ++lane) {
    for (std::int32_t rank = 0; rank < programs.ranks; ++rank) {
      const std::int32_t c = programs.communicator_of[programs.at(lane, rank)];
      if (c == kNone) continue;
      if (lane_of[place(c)] != kNone && lane_of[place(c)] != lane) one_lane[place(c)] = 0;
      lane_of[place(c)] = lane;
    }
  }
  groups_.assign(programs.communicators.size(), {});
  for (std::size_t c = 0; c < groups_.size(); ++c) {
    const Communicator& communicator = programs.communicators[c];
    if (one_lane[c] == 0) continue;
    std::vector<Ring> calls(communicator.calls.size());
    bool all = true;
    for (std::size_t call = 0; call < calls.size() && all; ++call)
      all = find_ring(communicator, communicator.calls[call], programs.wires, lone_rate, calls[call]);
    if (!all) continue;
    groups_[c].calls = std::move(calls);
    groups_[c].enter.resize(communicator.ranks.size());
  }
  drained_.assign(programs.wires.connections.size(), 0);
  messages_ = 0;
}

bool LoneRings::enter(std::int32_t communicator, std::int32_t call, std::size_t member, double time) {
  Group& group = groups_[place(communicator)];
  group.enter[member] = time;
  if (++group.inside < group.enter.size()) return false;
  group.inside = 0;
  const Ring& ring = group.calls[place(call)];
  const std::size_t n = ring.hops.size();
  // By place in the ring: time of the latest opening of its gate, and of the end of its latest message.
  open_.resize(2 * n);
  double* const opened = open_.data();
  double* const drained = opened + n;
  for (std::size_t i = 0; i < n; ++i) {
    opened[i] = group.enter[place(ring.hops[i].member)];
    drained[i] = drained_[place(ring.hops[i].connection)];
  }
  for (std::int32_t step = 0; step < ring.steps; ++step) {
    double received = 0;  // arrival at the next place, which has already used its own opening of this step
    for (std::size_t i = 0; i < n; ++i) {
      drained[i] = std::max(opened[i], drained[i]) + ring.hops[i].seconds;
      if (i > 0) opened[i] = std::max(opened[i], received);
      received = drained[i] + ring.hops[i].latency;
    }
    opened[0] = std::max(opened[0], received);
  }
  leaves_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    leaves_[place(ring.hops[i].member)] = opened[i];
    drained_[place(ring.hops[i].connection)] = drained[i];
  }
  messages_ += std::int64_t{ring.steps} * static_cast<std::int64_t>(n);
  return true;
}

}  // namespace shardscape::execution
