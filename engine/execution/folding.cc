// Writes the folded programs: walks the objects of each kind (ranks, connections, communicators with their calls and
// gates) and copies the first of each class, with every reference to another object replaced by that object's class.
#include "engine/execution/folding.h"

#include <algorithm>

#include "engine/execution/symmetry.h"

namespace shardscape::execution {

namespace {

class Folder {
 public:
  Folder(const Programs& programs, std::span<const double> capacity, const GateIndex& index, LikeObjects like)
      : p_(programs), capacity_(capacity), index_(index), like_(std::move(like)) {}

  Folding fold() {
    f_.rank_classes = like_.ranks.of;
    for (const std::int32_t link : like_.links.first) f_.bytes_per_second.push_back(capacity_[at(link)]);
    fold_ranks();
    fold_wires();
    for (const std::int32_t c : like_.communicators.first) fold_communicator(at(c));
    return std::move(f_);
  }

 private:
  [[nodiscard]] std::int32_t rank_class(std::int32_t rank) const { return like_.ranks.of[at(rank)]; }
  [[nodiscard]] std::int32_t wire_class(std::int32_t wire) const {
    return wire == kNone ? kNone : like_.wires.of[at(wire)];
  }
  [[nodiscard]] std::int32_t gate_class(std::size_t communicator, std::size_t call, std::int32_t gate) const {
    return gate == kNone ? kNone : like_.gates.of[index_.first(communicator, call) + at(gate)];
  }

  void fold_ranks() {
    Programs& to = f_.programs;
    to.ranks = static_cast<std::int32_t>(like_.ranks.first.size());
    to.lanes = p_.lanes;
    to.channels = p_.channels;
    to.instructions = p_.instructions;
    to.blocks = p_.blocks;
    to.sequences = p_.sequences;
    to.turns = p_.turns;
    to.least_times = p_.least_times;
    to.call_seconds = p_.call_seconds;
    for (const std::int32_t rank : like_.ranks.first) {
      to.sequence_of.push_back(p_.sequence_of[at(rank)]);
      if (!p_.copy_stretch.empty()) to.copy_stretch.push_back(p_.copy_stretch[at(rank)]);
    }
    for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
      for (const std::int32_t rank : like_.ranks.first) {
        to.outgoing.push_back(wire_class(p_.outgoing[p_.at(channel, rank)]));
        to.incoming.push_back(wire_class(p_.incoming[p_.at(channel, rank)]));
      }
    }
    for (std::int32_t lane = 0; lane < p_.lanes; ++lane) {
      for (const std::int32_t rank : like_.ranks.first) {
        const std::int32_t communicator = p_.communicator_of[p_.at(lane, rank)];
        to.communicator_of.push_back(communicator == kNone ? kNone
                                                           : like_.communicators.of[at(communicator)]);
      }
    }
    to.member_of.assign(to.communicator_of.size(), kNone);
  }

  /// Source and destination (ranks of the fabric) stay those of the connection that stands for its class.
  void fold_wires() {
    network::Traffic& to = f_.programs.wires;
    for (std::size_t k = 0; k < like_.wires.first.size(); ++k) {
      network::Connection wire = p_.wires.connections[at(like_.wires.first[k])];
      const auto begin = static_cast<std::int32_t>(to.path_links.size());
      for (std::int32_t i = wire.path_begin; i < wire.path_end; ++i) {
        const std::int32_t link = like_.links.of[at(p_.wires.path_links[at(i)])];
        if (std::find(to.path_links.begin() + begin, to.path_links.end(), link) != to.path_links.end())
          continue;
        const std::vector<std::int32_t>& on = like_.wires_on_link[at(link)];
        const auto [first, last] = std::equal_range(on.begin(), on.end(), static_cast<std::int32_t>(k));
        to.path_links.insert(to.path_links.end(), static_cast<std::size_t>(last - first), link);
      }
      wire.path_begin = begin;
      wire.path_end = static_cast<std::int32_t>(to.path_links.size());
      to.connections.push_back(wire);
    }
  }

  void fold_communicator(std::size_t c) {
    const Communicator& from = p_.communicators[c];
    const std::int32_t number = like_.communicators.of[c];
    Communicator to;
    std::vector<std::size_t> members;  // one member of each class of ranks
    for (std::size_t m = 0; m < from.ranks.size(); ++m) {
      const std::int32_t rank = rank_class(from.ranks[m]);
      if (std::find(to.ranks.begin(), to.ranks.end(), rank) != to.ranks.end()) continue;
      to.ranks.push_back(rank);
      members.push_back(m);
    }
    for (std::int32_t lane = 0; lane < p_.lanes; ++lane) {
      for (std::size_t m = 0; m < to.ranks.size(); ++m) {
        const std::size_t entry = f_.programs.at(lane, to.ranks[m]);
        if (f_.programs.communicator_of[entry] == number)
          f_.programs.member_of[entry] = static_cast<std::int32_t>(m);
      }
    }
    for (std::size_t call = 0; call < from.calls.size(); ++call)
      to.calls.push_back(fold_call(c, call, to.ranks, members));
    f_.programs.communicators.push_back(std::move(to));
  }

  CallTraffic fold_call(std::size_t c, std::size_t call, const std::vector<std::int32_t>& ranks,
                        const std::vector<std::size_t>& members) {
    const CallTraffic& from = p_.communicators[c].calls[call];
    CallTraffic to;
    to.copy_seconds = from.copy_seconds;
    to.node_seconds = from.node_seconds;
    folded_gate_.resize(like_.gates.first.size(), kNone);
    std::vector<std::size_t> kept;
    for (std::size_t g = 0; g < from.gates.size(); ++g) {
      const std::size_t number = index_.first(c, call) + g;
      if (!like_.gates.stands(number)) continue;
      folded_gate_[at(like_.gates.of[number])] = static_cast<std::int32_t>(kept.size());
      kept.push_back(g);
    }
    const auto folded = [&](std::int32_t gate) {
      return gate == kNone ? kNone : folded_gate_[at(gate_class(c, call, gate))];
    };
    for (const std::size_t g : kept) {
      CallTraffic::Gate gate = from.gates[g];
      const std::int32_t first = gate.first_message;
      gate.first_message = static_cast<std::int32_t>(to.messages.size());
      gate.next_gate = folded(gate.next_gate);
      if (gate.leaves != kNone) {
        const std::int32_t rank = rank_class(p_.communicators[c].ranks[at(gate.leaves)]);
        gate.leaves = static_cast<std::int32_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
      }
      for (std::int32_t m = first; m < first + gate.messages; ++m) {
        const network::Message& message = from.messages[at(m)];
        to.messages.push_back({wire_class(message.connection), folded(message.gate), message.bytes});
      }
      to.gates.push_back(gate);
    }
    for (const std::size_t m : members) {
      to.entry.push_back(folded(from.entry[m]));
      to.exit.push_back(folded(from.exit[m]));
    }
    return to;
  }

  const Programs& p_;
  std::span<const double> capacity_;
  const GateIndex& index_;
  LikeObjects like_;
  Folding f_;
  std::vector<std::int32_t> folded_gate_;  ///< by class: the gate's number in the folded call
};

}  // namespace

std::optional<Folding> fold(const Programs& programs, std::span<const double> link_bytes_per_second) {
  const GateIndex index(programs);
  std::optional<LikeObjects> like = find_like_objects(programs, index, link_bytes_per_second);
  if (!like.has_value()) return std::nullopt;
  return Folder(programs, link_bytes_per_second, index, std::move(*like)).fold();
}

}  // namespace shardscape::execution
