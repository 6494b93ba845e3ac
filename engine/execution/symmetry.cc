// Finds classes of like objects by colour refinement: every object has a hash, and each round mixes in the hashes of
// what it meets, until no round tells more objects apart.
#include "engine/execution/symmetry.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "engine/base/hash.h"

namespace shardscape::execution {

namespace {

using Hash = std::uint64_t;
using Hashes = std::vector<Hash>;

/// How one object meets another; mixed into the hashes.
enum class Meeting : std::uint8_t { message, next, entry, exit, outgoing, incoming };

Hash mix(Hash a, Hash b) { return hash_word(hash_word(kGoldenHash, a), b); }
Hash mix(Meeting how, Hash a, Hash b) { return hash_word(mix(a, b), static_cast<Hash>(how)); }
Hash bits(double value) { return std::bit_cast<Hash>(value); }
Hash bits(std::int32_t value) { return static_cast<std::uint32_t>(value); }

std::size_t distinct(const Hashes& hashes, Hashes& scratch) {
  scratch = hashes;
  std::sort(scratch.begin(), scratch.end());
  return static_cast<std::size_t>(std::unique(scratch.begin(), scratch.end()) - scratch.begin());
}

class Colours {
 public:
  Colours(const Programs& programs, const GateIndex& index, std::span<const double> capacity)
      : p_(programs),
        index_(index),
        ranks_(static_cast<std::size_t>(programs.ranks)),
        communicators_(programs.communicators.size(), 0),
        gates_(index.size()),
        wires_(programs.wires.connections.size()),
        links_(capacity.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r] = mix(bits(p_.sequence_of[r]), bits(p_.copy_stretch.empty() ? 1 : p_.copy_stretch[r]));
    }
    each_gate([&](std::size_t /*c*/, std::size_t call, std::size_t g, const CallTraffic::Gate& gate,
                  const CallTraffic& /*traffic*/) {
      gates_[g] = mix(mix(call, bits(gate.waiting)), mix(bits(gate.times), bits(gate.messages)));
    });
    for (std::size_t w = 0; w < wires_.size(); ++w) wires_[w] = bits(p_.wires.connections[w].latency);
    for (std::size_t l = 0; l < links_.size(); ++l) links_[l] = bits(capacity[l]);
  }

  /// Refines until nothing new is told apart; false where more than half of the ranks differ.
  bool refine() {
    std::size_t ranks = 0, all = 0;
    for (;;) {
      colour_wires();
      colour_links();
      colour_communicators();
      colour_gates();
      colour_ranks();
      const std::size_t now = distinct(ranks_, scratch_);
      if (2 * now > ranks_.size()) return false;
      const bool more_ranks = now != ranks;
      ranks = now;
      if (more_ranks) continue;
      std::size_t sum = 0;
      for (const Hashes* of : {&ranks_, &communicators_, &gates_, &wires_, &links_})
        sum += distinct(*of, scratch_);
      if (sum == all) return true;
      all = sum;
    }
  }

  [[nodiscard]] Classes classes() const {
    return {number(ranks_), number(communicators_), number(gates_), number(wires_), number(links_)};
  }

 private:
  /// Calls visit(communicator, call, number of the gate, gate, traffic) for every gate.
  template <class Visit>
  void each_gate(Visit visit) const {
    for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
      const std::vector<CallTraffic>& calls = p_.communicators[c].calls;
      for (std::size_t call = 0; call < calls.size(); ++call) {
        const std::size_t base = index_.first(c, call);
        for (std::size_t g = 0; g < calls[call].gates.size(); ++g)
          visit(c, call, base + g, calls[call].gates[g], calls[call]);
      }
    }
  }

  /// Calls visit(position of the message in its gate, message) for every message of a gate.
  template <class Visit>
  static void each_message(const CallTraffic& traffic, const CallTraffic::Gate& gate, Visit visit) {
    for (std::int32_t m = 0; m < gate.messages; ++m)
      visit(static_cast<std::size_t>(m), traffic.messages[static_cast<std::size_t>(gate.first_message + m)]);
  }

  [[nodiscard]] std::size_t gate_at(std::size_t communicator, std::size_t call, std::int32_t gate) const {
    return index_.first(communicator, call) + static_cast<std::size_t>(gate);
  }

  void colour_wires() {
    sums_.assign(wires_.size(), 0);
    for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
      for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
        const std::int32_t out = p_.outgoing[p_.at(channel, rank)], in = p_.incoming[p_.at(channel, rank)];
        const Hash colour = ranks_[static_cast<std::size_t>(rank)];
        if (out != kNone)
          sums_[static_cast<std::size_t>(out)] += mix(Meeting::outgoing, bits(channel), colour);
        if (in != kNone) sums_[static_cast<std::size_t>(in)] += mix(Meeting::incoming, bits(channel), colour);
      }
    }
    each_gate([&](std::size_t c, std::size_t call, std::size_t g, const CallTraffic::Gate& gate,
                  const CallTraffic& traffic) {
      each_message(traffic, gate, [&](std::size_t position, const network::Message& message) {
        const Hash receipt = message.gate == kNone ? 0 : gates_[gate_at(c, call, message.gate)];
        sums_[static_cast<std::size_t>(message.connection)] +=
            mix(mix(gates_[g], position), mix(bits(message.bytes), receipt));
      });
    });
    for (std::size_t w = 0; w < wires_.size(); ++w) {
      const network::Connection& wire = p_.wires.connections[w];
      if (is_instant(wire)) continue;  // its users need have nothing else in common
      Hash hash = mix(wires_[w], sums_[w]);
      for (std::int32_t i = wire.path_begin; i < wire.path_end; ++i)
        hash = hash_word(hash,
                         links_[static_cast<std::size_t>(p_.wires.path_links[static_cast<std::size_t>(i)])]);
      wires_[w] = hash;
    }
  }

  void colour_links() {
    sums_.assign(links_.size(), 0);
    for (std::size_t w = 0; w < wires_.size(); ++w) {
      const network::Connection& wire = p_.wires.connections[w];
      const Hash hash = mix(wires_[w], kGoldenHash);
      for (std::int32_t i = wire.path_begin; i < wire.path_end; ++i)
        sums_[static_cast<std::size_t>(p_.wires.path_links[static_cast<std::size_t>(i)])] += hash;
    }
    for (std::size_t l = 0; l < links_.size(); ++l) links_[l] = mix(links_[l], sums_[l]);
  }

  void colour_communicators() {
    sums_.assign(communicators_.size(), 0);
    each_gate([&](std::size_t c, std::size_t call, std::size_t g, const CallTraffic::Gate& /*gate*/,
                  const CallTraffic& /*traffic*/) { sums_[c] += mix(call, gates_[g]); });
    for (std::size_t c = 0; c < communicators_.size(); ++c)
      communicators_[c] = mix(communicators_[c], sums_[c]);
  }

  void colour_gates() {
    sums_.assign(gates_.size(), 0);
    next_ = gates_;
    each_gate([&](std::size_t c, std::size_t call, std::size_t g, const CallTraffic::Gate& gate,
                  const CallTraffic& traffic) {
      Hash hash = mix(gates_[g], communicators_[c]);
      each_message(traffic, gate, [&](std::size_t position, const network::Message& message) {
        hash = mix(hash, wires_[static_cast<std::size_t>(message.connection)]);
        if (message.gate == kNone) return;
        hash = mix(hash, gates_[gate_at(c, call, message.gate)]);
        sums_[gate_at(c, call, message.gate)] += mix(Meeting::message, gates_[g], position);
      });
      if (gate.next_gate != kNone) {
        hash = mix(hash, gates_[gate_at(c, call, gate.next_gate)]);
        sums_[gate_at(c, call, gate.next_gate)] += mix(Meeting::next, gates_[g], 0);
      }
      next_[g] = hash;
    });
    for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
      const Communicator& group = p_.communicators[c];
      for (std::size_t call = 0; call < group.calls.size(); ++call) {
        for (std::size_t m = 0; m < group.ranks.size(); ++m) {
          const Hash colour = ranks_[static_cast<std::size_t>(group.ranks[m])];
          const CallTraffic& traffic = group.calls[call];
          sums_[gate_at(c, call, traffic.entry[m])] += mix(Meeting::entry, colour, 0);
          sums_[gate_at(c, call, traffic.exit[m])] += mix(Meeting::exit, colour, 0);
        }
      }
    }
    for (std::size_t g = 0; g < gates_.size(); ++g) gates_[g] = mix(next_[g], sums_[g]);
  }

  void colour_ranks() {
    for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
      Hash hash = ranks_[static_cast<std::size_t>(rank)];
      for (std::int32_t lane = 0; lane < p_.lanes; ++lane) hash = mix(hash, of_lane(lane, rank));
      for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
        const std::int32_t out = p_.outgoing[p_.at(channel, rank)], in = p_.incoming[p_.at(channel, rank)];
        hash = mix(hash, out == kNone ? 0 : wires_[static_cast<std::size_t>(out)]);
        hash = mix(hash, in == kNone ? 0 : wires_[static_cast<std::size_t>(in)]);
      }
      ranks_[static_cast<std::size_t>(rank)] = hash;
    }
  }

  [[nodiscard]] Hash of_lane(std::int32_t lane, std::int32_t rank) const {
    const std::int32_t communicator = p_.communicator_of[p_.at(lane, rank)];
    if (communicator == kNone) return 0;
    const auto c = static_cast<std::size_t>(communicator);
    const auto member = static_cast<std::size_t>(p_.member_of[p_.at(lane, rank)]);
    const std::vector<CallTraffic>& calls = p_.communicators[c].calls;
    Hash hash = communicators_[c];
    for (std::size_t call = 0; call < calls.size(); ++call) {
      hash = mix(hash, mix(gates_[gate_at(c, call, calls[call].entry[member])],
                           gates_[gate_at(c, call, calls[call].exit[member])]));
    }
    return hash;
  }

  static Classes::Kind number(const Hashes& colours) {
    Classes::Kind kind;
    kind.of.reserve(colours.size());
    std::unordered_map<Hash, std::int32_t> known;
    for (std::size_t i = 0; i < colours.size(); ++i) {
      const auto [entry, fresh] = known.try_emplace(colours[i], static_cast<std::int32_t>(kind.first.size()));
      if (fresh) kind.first.push_back(static_cast<std::int32_t>(i));
      kind.of.push_back(entry->second);
    }
    return kind;
  }

  const Programs& p_;
  const GateIndex& index_;
  Hashes ranks_, communicators_, gates_, wires_, links_;
  Hashes sums_, next_, scratch_;
};

}  // namespace

GateIndex::GateIndex(const Programs& programs) {
  std::size_t gates = 0;
  for (const Communicator& group : programs.communicators) {
    calls_.push_back(bases_.size());
    for (const CallTraffic& call : group.calls) {
      bases_.push_back(gates);
      gates += call.gates.size();
    }
  }
  bases_.push_back(gates);
}

std::optional<Classes> find_classes(const Programs& programs, const GateIndex& gates,
                                    std::span<const double> link_bytes_per_second) {
  Colours colours(programs, gates, link_bytes_per_second);
  if (!colours.refine()) return std::nullopt;
  return colours.classes();
}

}  // namespace shardscape::execution
