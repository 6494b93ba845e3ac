// Finds classes of like objects: numbers the objects of all kinds in one row, lists what each is and whom it meets, and
// has them refined.
#include "engine/execution/symmetry.h"

#include <algorithm>

namespace shardscape::execution {

namespace {

/// How one object meets another; where it may do so several times, with the position in which it does.
enum class How : std::uint32_t {
  belongs,
  message,
  receipt,
  counted_down,
  next,
  previous,
  entry,
  exit,
  outgoing,
  incoming,
  hop
};
constexpr std::uint32_t way(How how, std::size_t position = 0) {
  return static_cast<std::uint32_t>(16 * position) + static_cast<std::uint32_t>(how);
}

class Objects {
 public:
  Objects(const Programs& programs, const GateIndex& index, std::span<const double> capacity)
      : p_(programs),
        index_(index),
        capacity_(capacity),
        communicators_(at(programs.ranks)),
        gates_(communicators_ + programs.communicators.size()),
        wires_(gates_ + index.size()),
        links_(wires_ + programs.wires.connections.size()),
        meetings_(links_ + capacity.size(), [this](auto meet) {
          gates_meet(meet);
          ranks_meet(meet);
          wires_meet(meet);
        }) {}

  [[nodiscard]] std::optional<LikeObjects> classes() const {
    const auto most_ranks_differ = [&](const Partition& found) {
      return 2 * number_classes(std::span(found.of()).first(communicators_)).first.size() > communicators_;
    };
    const Partition found = refine(meetings_, are(), most_ranks_differ);
    if (most_ranks_differ(found)) return std::nullopt;
    const auto of_kind = [&](std::size_t begin, std::size_t end) {
      return number_classes(std::span(found.of()).subspan(begin, end - begin));
    };
    LikeObjects like{
        of_kind(0, communicators_), of_kind(communicators_, gates_),      of_kind(gates_, wires_),
        of_kind(wires_, links_),    of_kind(links_, meetings_.objects()), {}};
    for (const std::int32_t g : like.gates.first)
      if (is_met_twice(gates_ + at(g), found.of())) return std::nullopt;
    for (const std::int32_t w : like.wires.first)
      if (is_met_twice(wires_ + at(w), found.of())) return std::nullopt;
    for (const std::int32_t link : like.links.first) {
      std::vector<std::int32_t>& on = like.wires_on_link.emplace_back();
      for (const Meetings::Meeting& m : meetings_.of(links_ + at(link)))
        on.push_back(like.wires.of[at(m.other) - wires_]);
      std::sort(on.begin(), on.end());
    }
    return like;
  }

 private:
  /// Calls visit(communicator, call, number of the gate among all, gate, traffic of the call) for every gate.
  template <class Visit>
  void each_gate(Visit visit) const {
    for (std::size_t c = 0; c < p_.communicators.size(); ++c) {
      const std::vector<CallTraffic>& calls = p_.communicators[c].calls;
      for (std::size_t call = 0; call < calls.size(); ++call) {
        std::size_t number = index_.first(c, call);
        for (const CallTraffic::Gate& gate : calls[call].gates) visit(c, call, number++, gate, calls[call]);
      }
    }
  }

  static std::span<const network::Message> sent(const CallTraffic& traffic, const CallTraffic::Gate& gate) {
    return std::span(traffic.messages).subspan(at(gate.first_message), at(gate.messages));
  }
  [[nodiscard]] std::span<const std::int32_t> path(const network::Connection& wire) const {
    return std::span(p_.wires.path_links).subspan(at(wire.path_begin), at(wire.path_end - wire.path_begin));
  }
  /// The first object of the gates of a call.
  [[nodiscard]] std::size_t gates_of(std::size_t communicator, std::size_t call) const {
    return gates_ + index_.first(communicator, call);
  }

  /// By object: a signature of its kind and of everything about it that does not depend on other objects.
  [[nodiscard]] std::vector<Signature> are() const {
    std::vector<Signature> are;
    are.reserve(meetings_.objects());
    const auto next = [&](std::uint64_t kind) -> Signature& {
      are.emplace_back().add(kind);
      return are.back();
    };
    for (std::size_t rank = 0; rank < at(p_.ranks); ++rank) {
      Signature& is = next(0);
      is.add(std::uint64_t{at(p_.sequence_of[rank])});
      if (!p_.copy_stretch.empty()) is.add(p_.copy_stretch[rank]);
      for (std::size_t lane = 0; lane < at(p_.lanes); ++lane)
        is.add(std::uint64_t{p_.communicator_of[lane * at(p_.ranks) + rank] == kNone});
    }
    for (const Communicator& group : p_.communicators) {
      Signature& is = next(1);
      for (const CallTraffic& call : group.calls) {
        is.add(call.copy_seconds);
        is.add(call.node_seconds);
      }
    }
    each_gate([&](std::size_t /*c*/, std::size_t call, std::size_t /*number*/, const CallTraffic::Gate& gate,
                  const CallTraffic& traffic) {
      Signature& is = next(2);
      for (const std::size_t number : {call, at(gate.waiting), at(gate.times)}) is.add(std::uint64_t{number});
      for (const network::Message& message : sent(traffic, gate)) is.add(message.bytes);
    });
    for (const network::Connection& wire : p_.wires.connections) next(3).add(wire.latency);
    for (const double capacity : capacity_) next(4).add(capacity);
    return are;
  }

  /// Gates belong to communicators, send messages over connections and count down other gates.
  template <class Meet>
  void gates_meet(Meet meet) const {
    each_gate([&](std::size_t c, std::size_t call, std::size_t number, const CallTraffic::Gate& gate,
                  const CallTraffic& traffic) {
      const std::size_t self = gates_ + number, first = gates_of(c, call);
      meet(self, way(How::belongs), communicators_ + c, way(How::belongs));
      if (gate.next_gate != kNone) meet(self, way(How::next), first + at(gate.next_gate), way(How::previous));
      std::size_t position = 0;
      for (const network::Message& message : sent(traffic, gate)) {
        const std::uint32_t how = way(How::message, position);
        // What is received at once is no flow on links, so the users of the connection need not be alike otherwise.
        if (!is_instant(p_.wires.connections[at(message.connection)]))
          meet(self, how, wires_ + at(message.connection), how);
        if (message.gate != kNone)
          meet(self, way(How::receipt, position), first + at(message.gate), way(How::counted_down, position));
        ++position;
      }
    });
  }

  /// Ranks enter and leave calls by gates, and send and receive through channels. Gates of another lane are others, even
  /// where they send the same.
  template <class Meet>
  void ranks_meet(Meet meet) const {
    for (std::int32_t lane = 0; lane < p_.lanes; ++lane) {
      for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
        const std::int32_t communicator = p_.communicator_of[p_.at(lane, rank)];
        if (communicator == kNone) continue;
        const std::size_t c = at(communicator), member = at(p_.member_of[p_.at(lane, rank)]);
        const std::vector<CallTraffic>& calls = p_.communicators[c].calls;
        for (std::size_t call = 0; call < calls.size(); ++call) {
          const std::size_t position = call * at(p_.lanes) + at(lane), first = gates_of(c, call);
          const std::uint32_t enters = way(How::entry, position), leaves = way(How::exit, position);
          meet(at(rank), enters, first + at(calls[call].entry[member]), enters);
          meet(at(rank), leaves, first + at(calls[call].exit[member]), leaves);
        }
      }
    }
    for (std::int32_t channel = 0; channel < p_.channels; ++channel) {
      const std::uint32_t out = way(How::outgoing, at(channel)), in = way(How::incoming, at(channel));
      for (std::int32_t rank = 0; rank < p_.ranks; ++rank) {
        const std::int32_t to = p_.outgoing[p_.at(channel, rank)], from = p_.incoming[p_.at(channel, rank)];
        if (to != kNone) meet(at(rank), out, wires_ + at(to), out);
        if (from != kNone) meet(at(rank), in, wires_ + at(from), in);
      }
    }
  }

  template <class Meet>
  void wires_meet(Meet meet) const {
    std::size_t self = wires_;
    for (const network::Connection& wire : p_.wires.connections) {
      std::size_t position = 0;
      for (const std::int32_t link : path(wire))
        meet(self, way(How::hop, position++), links_ + at(link), way(How::hop));
      ++self;
    }
  }

  /// Whether two objects of one class meet this object in the same way. Links do not count: a path may cross several of
  /// one class.
  [[nodiscard]] bool is_met_twice(std::size_t object, std::span<const std::int32_t> of) const {
    std::vector<std::pair<std::uint32_t, std::int32_t>> by;
    for (const Meetings::Meeting& m : meetings_.of(object))
      if (at(m.other) < links_) by.emplace_back(m.how, of[at(m.other)]);
    std::sort(by.begin(), by.end());
    return std::adjacent_find(by.begin(), by.end()) != by.end();
  }

  const Programs& p_;
  const GateIndex& index_;
  std::span<const double> capacity_;
  std::size_t communicators_, gates_, wires_, links_;  ///< the first object of each kind; ranks come first
  Meetings meetings_;
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

std::optional<LikeObjects> find_like_objects(const Programs& programs, const GateIndex& gates,
                                             std::span<const double> link_bytes_per_second) {
  return Objects(programs, gates, link_bytes_per_second).classes();
}

}  // namespace shardscape::execution
