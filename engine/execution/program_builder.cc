// Builds lanes, channels and calls: the collective model chooses an algorithm per call, and its messages become gates
// and connections of the programs.
#include "engine/execution/program_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/enum_names.h"
#include "engine/network/collectives/collective_rows.h"
#include "engine/network/collectives/collectives.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/groups/ring_order.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/cost_curve.h"

namespace shardscape::execution {

namespace {

using network::CollectiveOp;
using network::GroupTraffic;
using network::Operation;

/// Sends `bytes` from every member to its successor in the ring.
void add_pass(GroupTraffic& group, double bytes) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::size_t j = (i + 1) % group.size();
    group.builder.send(group.entry[i], group.builder.connection(group.ranks[i], group.ranks[j]), bytes,
                       group.exit[j]);
  }
}

/// For each connection the number of earlier ones with the same ends: rings over several channels each have their own.
std::vector<std::int32_t> numbers_among_like(std::span<const network::Connection> connections) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> like;
  std::vector<std::int32_t> numbers;
  for (const network::Connection& c : connections) numbers.push_back(like[{c.source, c.destination}]++);
  return numbers;
}

}  // namespace

ProgramBuilder::ProgramBuilder(network::PricedNetwork& network,
                               const StackProfile::Communication& communication,
                               const network::CollectivePrices& collectives,
                               std::span<const std::int32_t> placement)
    : network_(network), collectives_(collectives), placement_(placement) {
  programs_.ranks =
      placement.empty() ? network.fabric().ranks() : static_cast<std::int32_t>(placement.size());
  programs_.sequence_of.assign(static_cast<std::size_t>(programs_.ranks), 0);
  programs_.call_seconds = communication.call.value();
  programs_.bounds.emplace_back();
}

std::int32_t ProgramBuilder::add_lane(const network::RankGroup& group, std::string_view name) {
  const auto ranks = static_cast<std::size_t>(programs_.ranks);
  programs_.communicator_of.resize(programs_.communicator_of.size() + ranks, kNone);
  programs_.member_of.resize(programs_.member_of.size() + ranks, kNone);
  programs_.call_names.emplace_back();
  programs_.call_kinds.emplace_back();
  programs_.lane_names.emplace_back(name);
  const std::int32_t number = programs_.lanes++;
  programs_.turns.push_back(number);
  Lane lane{group, static_cast<std::int32_t>(programs_.communicators.size()), 0};
  std::vector<std::int32_t> logical(ranks);
  std::iota(logical.begin(), logical.end(), 0);
  const network::SiblingGroups groups = network::sibling_groups(group, network_.fabric(), logical);
  for (std::size_t g = 0; g < groups.count() && groups.size > 1; ++g) {
    const std::span<const std::int32_t> members = groups.group(g);
    for (std::size_t m = 0; m < members.size(); ++m) {
      programs_.communicator_of[programs_.at(number, members[m])] =
          static_cast<std::int32_t>(programs_.communicators.size());
      programs_.member_of[programs_.at(number, members[m])] = static_cast<std::int32_t>(m);
    }
    programs_.communicators.push_back({{members.begin(), members.end()}, {}});
    ++lane.communicators;
  }
  lanes_.push_back(lane);
  return number;
}

void ProgramBuilder::take_turns(std::int32_t lane, std::int32_t first) {
  SHARDSCAPE_CHECK(first < lane && lane < programs_.lanes, lane, first);
  programs_.turns[static_cast<std::size_t>(lane)] = programs_.turns[static_cast<std::size_t>(first)];
}

std::int32_t ProgramBuilder::add_channel(const std::function<std::int32_t(std::int32_t)>& peer,
                                         std::string_view name) {
  const std::int32_t number = programs_.channels++;
  programs_.channel_names.emplace_back(name);
  const auto ranks = static_cast<std::size_t>(programs_.ranks);
  programs_.outgoing.resize(programs_.outgoing.size() + ranks, kNone);
  programs_.incoming.resize(programs_.incoming.size() + ranks, kNone);
  for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
    const std::int32_t to = peer(rank);
    if (to == rank) continue;
    network::TrafficBuilder builder(network_.routes());
    const std::int32_t local = builder.connection(place(rank), place(to));
    unreachable_ = unreachable_ || !builder.unreachable().empty();
    const network::Traffic traffic = builder.finish().first;
    const std::int32_t connection = wire(-1 - number, traffic, local);
    programs_.outgoing[programs_.at(number, rank)] = connection;
    programs_.incoming[programs_.at(number, to)] = connection;
  }
  return number;
}

std::int32_t ProgramBuilder::wire(std::int32_t owner, const network::Traffic& traffic,
                                  std::int32_t connection, std::int32_t number) {
  const network::Connection& c = traffic.connections[static_cast<std::size_t>(connection)];
  const std::uint64_t key =
      (std::uint64_t{static_cast<std::uint32_t>(c.source)} << 32) | static_cast<std::uint32_t>(c.destination);
  std::vector<KnownWire>& known = wires_[key];
  for (const KnownWire& wire : known) {
    if (wire.owner == owner && wire.number == number) return wire.connection;
  }
  network::Traffic& all = programs_.wires;
  const std::span<const std::int32_t> path =
      std::span(traffic.path_links)
          .subspan(static_cast<std::size_t>(c.path_begin),
                   static_cast<std::size_t>(c.path_end - c.path_begin));
  network::Connection mine = c;
  mine.path_begin = static_cast<std::int32_t>(all.path_links.size());
  all.path_links.insert(all.path_links.end(), path.begin(), path.end());
  mine.path_end = static_cast<std::int32_t>(all.path_links.size());
  mine.latency = network_.step_latency(path);
  const auto added = static_cast<std::int32_t>(all.connections.size());
  all.connections.push_back(mine);
  known.push_back({owner, number, added});
  return added;
}

void ProgramBuilder::delay_channel(std::int32_t channel, Seconds delay) {
  for (std::int32_t rank = 0; rank < programs_.ranks; ++rank) {
    const std::int32_t out = programs_.outgoing[programs_.at(channel, rank)];
    if (out != kNone) programs_.wires.connections[static_cast<std::size_t>(out)].latency += delay.value();
  }
}

CallTraffic ProgramBuilder::traffic_of(std::int32_t communicator, const network::Pattern& pattern, bool pass,
                                       bool turned) {
  const std::vector<std::int32_t>& members =
      programs_.communicators[static_cast<std::size_t>(communicator)].ranks;
  std::vector<std::int32_t> physical;
  for (const std::int32_t rank : members) physical.push_back(place(rank));
  network::TrafficBuilder builder(network_.routes(), network::TrafficLayout::repeated);
  network::GroupTraffic group{
      builder, turned ? network::ring_order(network_.fabric(), physical) : physical, {}, {}, 0};
  for (std::size_t i = 0; i < group.size(); ++i) group.entry.push_back(builder.add_gate());
  for (std::size_t i = 0; i < group.size(); ++i) group.exit.push_back(builder.add_gate());
  if (pass) {
    add_pass(group, pattern.bytes);
  } else {
    network::add_collective(group, pattern);
  }
  unreachable_ = unreachable_ || !builder.unreachable().empty();
  const network::Traffic traffic = builder.finish().first;

  CallTraffic call;
  for (const network::Gate& gate : traffic.gates) {
    SHARDSCAPE_CHECK(gate.not_before == 0 && gate.delay == 0, name_of(pattern.algorithm));
    call.gates.push_back(
        {gate.waiting, gate.first_message, gate.messages, gate.next_gate, kNone, gate.times});
  }
  call.messages = traffic.messages;
  const std::vector<std::int32_t> number = numbers_among_like(traffic.connections);
  for (network::Message& message : call.messages) {
    message.connection =
        wire(communicator, traffic, message.connection, number[static_cast<std::size_t>(message.connection)]);
  }
  call.entry.resize(members.size());
  call.exit.resize(members.size());
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto member =
        static_cast<std::size_t>(std::ranges::find(physical, group.ranks[i]) - physical.begin());
    ++call.gates[static_cast<std::size_t>(group.entry[i])].waiting;
    ++call.gates[static_cast<std::size_t>(group.exit[i])].waiting;
    call.gates[static_cast<std::size_t>(group.exit[i])].leaves = static_cast<std::int32_t>(member);
    call.entry[member] = group.entry[i];
    call.exit[member] = group.exit[i];
  }
  return call;
}

std::int32_t ProgramBuilder::call(std::int32_t lane_number, CollectiveOp op, Bytes bytes) {
  const Lane& lane = lanes_[static_cast<std::size_t>(lane_number)];
  if (lane.communicators == 0 || bytes <= Bytes(0)) return kNone;
  const CallKey key{lane_number, op, bytes.value()};
  const auto known = std::ranges::find(calls_, key, &KnownCall::key);
  if (known != calls_.end()) return known->call;

  network::Pattern pattern;
  pattern.operation = network::operation_of(op);
  const Bytes wire = collectives_.healthy().wire_bytes(op, bytes, lane.group);
  pattern.bytes = wire.value();
  bool turned = false;
  const bool pass = pattern.operation == Operation::point_to_point;
  std::string name = network::row_of(op).name;
  if (!pass) {
    const auto choice = collectives_.healthy().choice({op, bytes, lane.group});
    SHARDSCAPE_CHECK(choice.has_value(), name);
    pattern.algorithm = choice->algorithm;
    pattern.skew = collectives_.healthy().experts().skew_of(op, lane.group);
    pattern.chunks = network::chunks_of(pattern.operation, pattern.algorithm, wire.value());
    pattern.ring_order = choice->ring_order;
    pattern.channels = choice->channels;
    turned = choice->ring_order == network::RingOrder::hamiltonian;
    name += " by " + network::to_string(*choice);
  }
  std::vector<std::string>& names = programs_.call_names[static_cast<std::size_t>(lane_number)];
  const auto number = static_cast<std::int32_t>(names.size());
  names.push_back(fmt::format("{}, {} bytes", name, static_cast<std::int64_t>(bytes.value())));
  programs_.call_kinds[static_cast<std::size_t>(lane_number)].push_back(
      {op, bytes.value(), wire.value(), pattern.skew});
  const double node_seconds = collectives_.healthy().beyond_links(op, wire, lane.group).value();
  for (std::int32_t c = lane.first_communicator; c < lane.first_communicator + lane.communicators; ++c) {
    CallTraffic traffic = traffic_of(c, pattern, pass, turned);
    const std::size_t members = programs_.communicators[static_cast<std::size_t>(c)].ranks.size();
    traffic.copy_seconds =
        collectives_.healthy()
            .copy_time(pattern.operation, pattern.algorithm, wire, static_cast<std::int32_t>(members))
            .value();
    traffic.node_seconds = node_seconds;
    programs_.communicators[static_cast<std::size_t>(c)].calls.push_back(std::move(traffic));
  }
  calls_.push_back({key, number});
  return number;
}

Seconds ProgramBuilder::estimate(std::int32_t lane, CollectiveOp op, Bytes bytes, double calls,
                                 const network::Slice& slice) {
  return collectives_.time({op, bytes, lanes_[static_cast<std::size_t>(lane)].group, calls, slice});
}

std::int32_t ProgramBuilder::end_block(std::string_view name) {
  const auto end = static_cast<std::int32_t>(programs_.instructions.size());
  programs_.blocks.push_back({block_begin_, end});
  block_begin_ = end;
  programs_.block_names.emplace_back(name);
  return static_cast<std::int32_t>(programs_.blocks.size()) - 1;
}

std::int32_t ProgramBuilder::name(std::string_view text, const OperatorWork& work) {
  for (std::size_t i = 0; i < programs_.names.size(); ++i) {
    if (programs_.names[i] == text && programs_.works[i] == work) return static_cast<std::int32_t>(i);
  }
  programs_.names.emplace_back(text);
  programs_.works.push_back(work);
  return static_cast<std::int32_t>(programs_.names.size()) - 1;
}

std::int32_t ProgramBuilder::index_in(std::vector<std::string>& texts, std::string_view text) {
  const auto known = std::ranges::find(texts, text);
  if (known != texts.end()) return static_cast<std::int32_t>(known - texts.begin());
  texts.emplace_back(text);
  return static_cast<std::int32_t>(texts.size()) - 1;
}

std::int32_t ProgramBuilder::add_sequence(std::vector<std::int32_t> blocks, std::string_view name) {
  programs_.sequence_names.emplace_back(name);
  programs_.sequences.push_back(std::move(blocks));
  return static_cast<std::int32_t>(programs_.sequences.size()) - 1;
}

}  // namespace shardscape::execution
