// Proves that classes of like objects (symmetry.h) behave alike, property by property, and writes the folded programs
// with one object per class.
#include "engine/execution/folding.h"

#include <algorithm>
#include <bit>

#include "engine/execution/symmetry.h"

namespace shardscape::execution {

namespace {

constexpr std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// For each object the sorted list of words of what meets it; all lists lie in one array.
class Lists {
 public:
  /// `visit` is called twice: it must pass the same (object, word) pairs, in the same order, to its argument each time.
  template <class Visit>
  Lists(std::size_t objects, Visit visit) : begin_(objects + 1, 0) {
    visit([&](std::size_t object, std::uint64_t /*word*/) { ++begin_[object + 1]; });
    for (std::size_t i = 0; i < objects; ++i) begin_[i + 1] += begin_[i];
    words_.resize(begin_.back());
    std::vector<std::size_t> end(begin_.begin(), begin_.end() - 1);
    visit([&](std::size_t object, std::uint64_t word) { words_[end[object]++] = word; });
    for (std::size_t i = 0; i < objects; ++i)
      std::sort(words_.begin() + first(i), words_.begin() + first(i + 1));
  }
  [[nodiscard]] std::span<const std::uint64_t> of(std::size_t object) const {
    return std::span(words_).subspan(begin_[object], begin_[object + 1] - begin_[object]);
  }

 private:
  [[nodiscard]] std::ptrdiff_t first(std::size_t object) const {
    return static_cast<std::ptrdiff_t>(begin_[object]);
  }
  std::vector<std::size_t> begin_;
  std::vector<std::uint64_t> words_;
};

bool equal(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
bool once_each(std::span<const std::uint64_t> sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

/// The kind of thing that meets an object; word() adds its class and its place there.
enum class User : std::uint8_t { message, next, entry, exit, outgoing, incoming };
std::uint64_t word(User user, std::int32_t of_class, std::int32_t position) {
  return (std::uint64_t{static_cast<std::uint8_t>(user)} << 60) | (std::uint64_t{at(of_class)} << 30) |
         std::uint64_t{at(position)};
}

class Folder {
 public:
  Folder(const Programs& programs, std::span<const double> capacity, const GateIndex& index, Classes classes)
      : p_(programs), capacity_(capacity), index_(index), classes_(std::move(classes)) {}

  /// Whether the members of each class are alike in every property that matters.
  [[nodiscard]] bool proves() const {
    return communicators_alike() && ranks_alike() && gates_alike() && wires_alike() && links_alike();
  }

  Folding fold() {
    f_.rank_classes = classes_.ranks.of;
    for (const std::int32_t link : classes_.links.first) f_.bytes_per_second.push_back(capacity_[at(link)]);
    fold_ranks();
    fold_wires();
    for (const std::int32_t c : classes_.communicators.first) fold_communicator(at(c));
    return std::move(f_);
  }

 private:
  [[nodiscard]] std::int32_t rank_class(std::int32_t rank) const { return classes_.ranks.of[at(rank)]; }
  [[nodiscard]] std::int32_t wire_class(std::int32_t wire) const {
    return wire == kNone ? kNone : classes_.wires.of[at(wire)];
  }
  [[nodiscard]] std::int32_t gate_class(std::size_t communicator, std::size_t call, std::int32_t gate) const {
    return gate == kNone ? kNone : classes_.gates.of[index_.first(communicator, call) + at(gate)];
  }

  /// Whether calls of like communicators have gates of the same classes, as many of each, and no class has gates of two
  /// calls.
  [[nodiscard]] bool communicators_alike() const {
    std::vector<std::int32_t> owner(classes_.gates.first.size(), kNone), here, there;
    std::int32_t owners = 0;
    for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
      const std::size_t model = classes_.communicators.representative(c);
      const std::vector<CallTraffic>&mine = p_.communicators[c].calls, &its = p_.communicators[model].calls;
      if (mine.size() != its.size()) return false;
      for (std::size_t call = 0; call < mine.size(); ++call) {
        if (mine[call].copy_seconds != its[call].copy_seconds ||
            mine[call].node_seconds != its[call].node_seconds)
          return false;
        sorted_gates(c, call, here);
        sorted_gates(model, call, there);
        if (here != there) return false;
        if (c != model) continue;
        for (const std::int32_t gate : here) {
          if (owner[at(gate)] != kNone && owner[at(gate)] != owners) return false;
          owner[at(gate)] = owners;
        }
        ++owners;
      }
    }
    return true;
  }

  void sorted_gates(std::size_t communicator, std::size_t call, std::vector<std::int32_t>& sorted) const {
    const auto begin =
        classes_.gates.of.begin() + static_cast<std::ptrdiff_t>(index_.first(communicator, call));
    const std::size_t gates = p_.communicators[communicator].calls[call].gates.size();
    sorted.assign(begin, begin + static_cast<std::ptrdiff_t>(gates));
    std::sort(sorted.begin(), sorted.end());
  }

  [[nodiscard]] bool ranks_alike() const {
    for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
      const auto model = static_cast<std::int32_t>(classes_.ranks.representative(at(rank)));
      if (p_.sequence_of[at(rank)] != p_.sequence_of[at(model)]) return false;
      if (!p_.copy_stretch.empty() && p_.copy_stretch[at(rank)] != p_.copy_stretch[at(model)]) return false;
      for (std::int32_t lane = 0; lane < p_.lanes; ++lane)
        if (!lanes_alike(lane, rank, model)) return false;
      for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
        const std::size_t mine = p_.at(channel, rank), its = p_.at(channel, model);
        if (wire_class(p_.outgoing[mine]) != wire_class(p_.outgoing[its]) ||
            wire_class(p_.incoming[mine]) != wire_class(p_.incoming[its]))
          return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool lanes_alike(std::int32_t lane, std::int32_t rank, std::int32_t model) const {
    const std::size_t mine = p_.at(lane, rank), its = p_.at(lane, model);
    const std::int32_t a = p_.communicator_of[mine], b = p_.communicator_of[its];
    if (a == kNone || b == kNone) return a == b;
    if (classes_.communicators.of[at(a)] != classes_.communicators.of[at(b)]) return false;
    const std::size_t m = at(p_.member_of[mine]), n = at(p_.member_of[its]);
    for (std::size_t call = 0; call < p_.communicators[at(a)].calls.size(); ++call) {
      const CallTraffic &x = p_.communicators[at(a)].calls[call], &y = p_.communicators[at(b)].calls[call];
      if (gate_class(at(a), call, x.entry[m]) != gate_class(at(b), call, y.entry[n]) ||
          gate_class(at(a), call, x.exit[m]) != gate_class(at(b), call, y.exit[n]))
        return false;
    }
    return true;
  }

  /// Calls visit(communicator, call, gate within the call, number of the gate among all).
  template <class Visit>
  void each_gate(Visit visit) const {
    for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
      for (std::size_t call = 0; call < p_.communicators[c].calls.size(); ++call) {
        const std::size_t gates = p_.communicators[c].calls[call].gates.size();
        for (std::size_t g = 0; g < gates; ++g) visit(c, call, g, index_.first(c, call) + g);
      }
    }
  }

  [[nodiscard]] bool gates_alike() const {
    struct Place {
      std::size_t communicator = 0, call = 0, gate = 0;
    };
    std::vector<Place> first(classes_.gates.first.size());
    bool alike = true;
    each_gate([&](std::size_t c, std::size_t call, std::size_t g, std::size_t number) {
      Place& model = first[at(classes_.gates.of[number])];
      // The first gate of a class must lie in a communicator that stands for its class, as only those are folded.
      if (classes_.gates.stands(number)) {
        alike = alike && classes_.communicators.stands(c);
        model = {c, call, g};
      }
      alike = alike && same_gate(c, call, g, model.communicator, model.call, model.gate);
    });
    return alike && counted_down_alike();
  }

  [[nodiscard]] bool same_gate(std::size_t c, std::size_t call, std::size_t g, std::size_t other,
                               std::size_t its_call, std::size_t its_gate) const {
    const CallTraffic& mine = p_.communicators[c].calls[call];
    const CallTraffic& its = p_.communicators[other].calls[its_call];
    const CallTraffic::Gate &a = mine.gates[g], &b = its.gates[its_gate];
    if (a.waiting != b.waiting || a.times != b.times || a.messages != b.messages) return false;
    if (gate_class(c, call, a.next_gate) != gate_class(other, its_call, b.next_gate)) return false;
    if ((a.leaves == kNone) != (b.leaves == kNone)) return false;
    if (a.leaves != kNone && rank_class(p_.communicators[c].ranks[at(a.leaves)]) !=
                                 rank_class(p_.communicators[other].ranks[at(b.leaves)]))
      return false;
    for (std::int32_t m = 0; m < a.messages; ++m) {
      const network::Message& x = mine.messages[at(a.first_message + m)];
      const network::Message& y = its.messages[at(b.first_message + m)];
      if (x.bytes != y.bytes || wire_class(x.connection) != wire_class(y.connection) ||
          gate_class(c, call, x.gate) != gate_class(other, its_call, y.gate))
        return false;
    }
    return true;
  }

  /// Whether gates of one class are counted down by the same classes, once by each.
  [[nodiscard]] bool counted_down_alike() const {
    const Lists counts(index_.size(), [&](auto add) {
      each_gate([&](std::size_t c, std::size_t call, std::size_t g, std::size_t number) {
        const CallTraffic& traffic = p_.communicators[c].calls[call];
        const CallTraffic::Gate& gate = traffic.gates[g];
        const std::int32_t mine = classes_.gates.of[number];
        const std::size_t base = index_.first(c, call);
        for (std::int32_t m = 0; m < gate.messages; ++m) {
          const std::int32_t receipt = traffic.messages[at(gate.first_message + m)].gate;
          if (receipt != kNone) add(base + at(receipt), word(User::message, mine, m));
        }
        if (gate.next_gate != kNone) add(base + at(gate.next_gate), word(User::next, mine, 0));
      });
      for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
        const Communicator& group = p_.communicators[c];
        for (std::size_t call = 0; call < group.calls.size(); ++call) {
          for (std::size_t m = 0; m < group.ranks.size(); ++m) {
            const std::int32_t rank = rank_class(group.ranks[m]);
            add(index_.first(c, call) + at(group.calls[call].entry[m]), word(User::entry, rank, 0));
            add(index_.first(c, call) + at(group.calls[call].exit[m]), word(User::exit, rank, 0));
          }
        }
      }
    });
    for (std::size_t g = 0; g < index_.size(); ++g) {
      if (!equal(counts.of(g), counts.of(classes_.gates.representative(g)))) return false;
      if (classes_.gates.stands(g) && !once_each(counts.of(g))) return false;
    }
    return true;
  }

  [[nodiscard]] bool wires_alike() const {
    const std::vector<network::Connection>& wires = p_.wires.connections;
    const Lists users(wires.size(), [&](auto add) {
      each_gate([&](std::size_t c, std::size_t call, std::size_t g, std::size_t number) {
        const CallTraffic& traffic = p_.communicators[c].calls[call];
        const CallTraffic::Gate& gate = traffic.gates[g];
        for (std::int32_t m = 0; m < gate.messages; ++m) {
          const std::int32_t wire = traffic.messages[at(gate.first_message + m)].connection;
          if (!is_instant(wires[at(wire)])) add(at(wire), word(User::message, classes_.gates.of[number], m));
        }
      });
      for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
        for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
          const std::int32_t out = p_.outgoing[p_.at(channel, rank)], in = p_.incoming[p_.at(channel, rank)];
          if (out != kNone) add(at(out), word(User::outgoing, rank_class(rank), channel));
          if (in != kNone) add(at(in), word(User::incoming, rank_class(rank), channel));
        }
      }
    });
    for (std::size_t w = 0; w < wires.size(); ++w) {
      const std::size_t model = classes_.wires.representative(w);
      if (wires[w].latency != wires[model].latency || !same_path(wires[w], wires[model])) return false;
      if (!equal(users.of(w), users.of(model)) || !once_each(users.of(w))) return false;
    }
    return true;
  }

  [[nodiscard]] std::int32_t link_class(std::int32_t slot) const {
    return classes_.links.of[at(p_.wires.path_links[at(slot)])];
  }
  [[nodiscard]] bool same_path(const network::Connection& a, const network::Connection& b) const {
    if (a.path_end - a.path_begin != b.path_end - b.path_begin) return false;
    for (std::int32_t i = 0; i < a.path_end - a.path_begin; ++i)
      if (link_class(a.path_begin + i) != link_class(b.path_begin + i)) return false;
    return true;
  }

  /// For each link the classes of the connections that use it.
  [[nodiscard]] Lists wires_of_links() const {
    return Lists(capacity_.size(), [&](auto add) {
      for (std::size_t w = 0; w < p_.wires.connections.size(); ++w) {
        const network::Connection& wire = p_.wires.connections[w];
        for (std::int32_t i = wire.path_begin; i < wire.path_end; ++i)
          add(at(p_.wires.path_links[at(i)]), at(classes_.wires.of[w]));
      }
    });
  }

  [[nodiscard]] bool links_alike() const {
    const Lists wires = wires_of_links();
    for (std::size_t l = 0; l < capacity_.size(); ++l) {
      const std::size_t model = classes_.links.representative(l);
      if (capacity_[l] != capacity_[model] || !equal(wires.of(l), wires.of(model))) return false;
    }
    return true;
  }

  void fold_ranks() {
    Programs& to = f_.programs;
    to.ranks = static_cast<std::int32_t>(classes_.ranks.first.size());
    to.lanes = p_.lanes;
    to.channels = p_.channels;
    to.instructions = p_.instructions;
    to.blocks = p_.blocks;
    to.sequences = p_.sequences;
    to.turns = p_.turns;
    to.call_seconds = p_.call_seconds;
    for (const std::int32_t rank : classes_.ranks.first) {
      to.sequence_of.push_back(p_.sequence_of[at(rank)]);
      if (!p_.copy_stretch.empty()) to.copy_stretch.push_back(p_.copy_stretch[at(rank)]);
    }
    for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
      for (const std::int32_t rank : classes_.ranks.first) {
        to.outgoing.push_back(wire_class(p_.outgoing[p_.at(channel, rank)]));
        to.incoming.push_back(wire_class(p_.incoming[p_.at(channel, rank)]));
      }
    }
    for (std::int32_t lane = 0; lane < p_.lanes; ++lane) {
      for (const std::int32_t rank : classes_.ranks.first) {
        const std::int32_t communicator = p_.communicator_of[p_.at(lane, rank)];
        to.communicator_of.push_back(communicator == kNone ? kNone
                                                           : classes_.communicators.of[at(communicator)]);
      }
    }
    to.member_of.assign(to.communicator_of.size(), kNone);
  }

  /// Source and destination (ranks of the fabric) stay those of the connection that stands for its class.
  void fold_wires() {
    const Lists wires = wires_of_links();
    network::Traffic& to = f_.programs.wires;
    for (std::size_t k = 0; k < classes_.wires.first.size(); ++k) {
      network::Connection wire = p_.wires.connections[at(classes_.wires.first[k])];
      const auto begin = static_cast<std::int32_t>(to.path_links.size());
      for (std::int32_t i = wire.path_begin; i < wire.path_end; ++i) {
        const std::int32_t link = link_class(i);
        if (std::find(to.path_links.begin() + begin, to.path_links.end(), link) != to.path_links.end())
          continue;
        const std::span<const std::uint64_t> on = wires.of(at(classes_.links.first[at(link)]));
        const auto like_it = std::equal_range(on.begin(), on.end(), std::uint64_t{k});
        to.path_links.insert(to.path_links.end(), static_cast<std::size_t>(like_it.second - like_it.first),
                             link);
      }
      wire.path_begin = begin;
      wire.path_end = static_cast<std::int32_t>(to.path_links.size());
      to.connections.push_back(wire);
    }
  }

  void fold_communicator(std::size_t c) {
    const Communicator& from = p_.communicators[c];
    const std::int32_t number = classes_.communicators.of[c];
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
    folded_gate_.resize(classes_.gates.first.size(), kNone);
    std::vector<std::size_t> kept;
    for (std::size_t g = 0; g < from.gates.size(); ++g) {
      const std::size_t number = index_.first(c, call) + g;
      if (!classes_.gates.stands(number)) continue;
      folded_gate_[at(classes_.gates.of[number])] = static_cast<std::int32_t>(kept.size());
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
  Classes classes_;
  Folding f_;
  std::vector<std::int32_t> folded_gate_;  ///< by class: the gate's number in the folded call
};

}  // namespace

std::optional<Folding> fold(const Programs& programs, std::span<const double> link_bytes_per_second) {
  const GateIndex index(programs);
  std::optional<Classes> classes = find_classes(programs, index, link_bytes_per_second);
  if (!classes.has_value()) return std::nullopt;
  Folder folder(programs, link_bytes_per_second, index, std::move(*classes));
  if (!folder.proves()) return std::nullopt;
  return folder.fold();
}

}  // namespace shardscape::execution
