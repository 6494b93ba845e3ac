// Lays patterns out as traffic: records gates, connections and messages, folds messages that fare alike where there are
// many, sorts messages by gate, and finds gates that never open.
#include "engine/network/collectives/traffic_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"
#include "engine/network/collectives/algorithm_rules.h"
#include "engine/network/collectives/folded_sends.h"
#include "engine/network/collectives/pairwise_turns.h"
#include "engine/network/groups/ring_order.h"

namespace shardscape::network {

std::int32_t TrafficBuilder::add_gate(double not_before, double delay) {
  gates_.push_back({0, 0, 0, kNone, not_before, delay, 1, kNone});
  return gates() - 1;
}

std::int32_t TrafficBuilder::add_repeating_gate(double not_before, std::int32_t times, std::int32_t last) {
  SHARDSCAPE_CHECK(times >= 2, times);
  const std::int32_t gate = add_gate(not_before);
  gates_.back().times = times;
  gates_.back().next_gate = last;
  if (last != kNone) ++gates_[static_cast<std::size_t>(last)].waiting;
  return gate;
}

void TrafficBuilder::add_pairwise_rounds(const std::vector<std::int32_t>& ranks, bool exchange, double start,
                                         double bytes, const std::vector<std::int32_t>& entry,
                                         const std::vector<std::int32_t>& exit) {
  const std::size_t n = ranks.size();
  PairwiseRounds rounds{ranks, exchange, gates(), &fabric_};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t gate = add_repeating_gate(start, static_cast<std::int32_t>(n) - 1, exit[i]);
    gates_.back().rounds = static_cast<std::int32_t>(rounds_.size());
    send(gate, connection(ranks[i], ranks[rounds.partner(i, 0)]), bytes, gate);
  }
  for (std::size_t i = 0; i < n; ++i) opens(entry[i], rounds.first_gate + static_cast<std::int32_t>(i));
  if (fabric_.cut()) find_unreachable(rounds);
  rounds_.push_back(std::move(rounds));
}

/// Finds pairs without a route in the rounds after the first; those of the first have connections.
void TrafficBuilder::find_unreachable(const PairwiseRounds& rounds) {
  const std::size_t n = rounds.ranks.size();
  std::vector<std::int32_t> path;
  for (std::int32_t round = 1; round + 1 < static_cast<std::int32_t>(n); ++round) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t to = rounds.ranks[rounds.partner(i, round)];
      path.clear();
      if (!fabric_.append_route(rounds.ranks[i], to, path)) unreachable_.push_back({rounds.ranks[i], to, {}});
    }
  }
}

std::int32_t TrafficBuilder::add_connection(std::int32_t source, std::int32_t destination,
                                            std::size_t path_begin) {
  double latency = 0;
  for (std::size_t i = path_begin; i < path_links_.size(); ++i) {
    latency += fabric_.latency_seconds()[static_cast<std::size_t>(path_links_[i])];
  }
  list_.push_back({source, destination, static_cast<std::int32_t>(path_begin),
                   static_cast<std::int32_t>(path_links_.size()), latency});
  return static_cast<std::int32_t>(list_.size()) - 1;
}

std::int32_t TrafficBuilder::connection(std::int32_t source, std::int32_t destination) {
  const std::uint64_t key =
      (std::uint64_t{static_cast<std::uint32_t>(source)} << 32) | static_cast<std::uint32_t>(destination);
  const auto [known, fresh] = connections_.try_emplace(key, static_cast<std::int32_t>(list_.size()));
  if (!fresh) return known->second;
  const std::size_t begin = path_links_.size();
  // Beyond the limit the caller gives up, so routes need not be stored any more.
  if (begin <= static_cast<std::size_t>(kMaxRouteEntries) &&
      !fabric_.append_route(source, destination, path_links_)) {
    unreachable_.push_back({source, destination, {}});
  }
  return add_connection(source, destination, begin);
}

std::int32_t TrafficBuilder::connection_over(std::int32_t link) {
  const Link& wire = fabric_.fabric().links()[static_cast<std::size_t>(link)];
  const std::size_t begin = path_links_.size();
  path_links_.push_back(link);
  return add_connection(wire.source, wire.destination, begin);
}

void TrafficBuilder::send(std::int32_t gate, std::int32_t connection, double bytes, std::int32_t receipt) {
  messages_.push_back({connection, receipt, bytes});
  released_by_.push_back(gate);
  ++gates_[static_cast<std::size_t>(gate)].messages;
  if (receipt == kNone) return;
  Gate& awaiting = gates_[static_cast<std::size_t>(receipt)];
  if (awaiting.times == 1) ++awaiting.waiting;
}

void TrafficBuilder::opens(std::int32_t first, std::int32_t then) {
  if (first == kNone || then == kNone) return;
  SHARDSCAPE_CHECK(gates_[static_cast<std::size_t>(first)].times == 1, first);
  if (gates_[static_cast<std::size_t>(then)].times > 1) {
    // A repeating gate would take the receipt of a relay for a turn. So a gate in between, with one successor, counts
    // it down.
    const std::int32_t lock = add_gate();
    ++gates_[static_cast<std::size_t>(then)].waiting;
    gates_[static_cast<std::size_t>(lock)].next_gate = then;
    then = lock;
  }
  ++gates_[static_cast<std::size_t>(then)].waiting;
  Gate& gate = gates_[static_cast<std::size_t>(first)];
  if (gate.next_gate == kNone) {
    gate.next_gate = then;
  } else {
    openings_.emplace_back(first, then);
  }
}

std::int64_t TrafficBuilder::link_openings() {
  if (openings_.empty()) return 0;
  const std::int32_t relay = add_connection(0, 0, path_links_.size());
  for (const auto& [first, then] : openings_) {
    messages_.push_back({relay, then, 0});
    released_by_.push_back(first);
    ++gates_[static_cast<std::size_t>(first)].messages;
  }
  return static_cast<std::int64_t>(openings_.size());
}

/// Sorts messages by their gates (a counting sort), and keeps the order within each gate.
void TrafficBuilder::sort_messages() {
  std::int32_t next = 0;
  for (Gate& gate : gates_) {
    gate.first_message = next;
    next += gate.messages;
  }
  if (std::ranges::is_sorted(released_by_)) return;
  for (Gate& gate : gates_) gate.messages = 0;
  std::vector<Message> sorted(messages_.size());
  for (std::size_t m = 0; m < messages_.size(); ++m) {
    Gate& gate = gates_[static_cast<std::size_t>(released_by_[m])];
    sorted[static_cast<std::size_t>(gate.first_message + gate.messages++)] = messages_[m];
  }
  messages_ = std::move(sorted);
}

std::pair<Traffic, std::int64_t> TrafficBuilder::finish() {
  const std::int64_t relays = link_openings();
  sort_messages();
  Traffic traffic{std::move(list_), std::move(path_links_), std::move(messages_), std::move(gates_),
                  std::move(rounds_)};
  list_.clear();
  path_links_.clear();
  messages_.clear();
  gates_.clear();
  rounds_.clear();
  released_by_.clear();
  openings_.clear();
  connections_.clear();
  return {std::move(traffic), relays};
}

namespace {

/// Builds one pattern after the other. `owed_[p][r]` is the gate that opens when rank r has received everything that
/// pattern p owes it; only patterns that others come after have such gates.
class PatternBuilder {
 public:
  PatternBuilder(const std::vector<Pattern>& patterns, FaultyFabric& fabric, TrafficLayout layout)
      : patterns_(patterns), fabric_(fabric), builder_(fabric, layout), owed_(patterns.size()) {
    awaited_.resize(patterns.size());
    for (const Pattern& pattern : patterns) {
      for (const std::int32_t p : pattern.after) awaited_[static_cast<std::size_t>(p)] = true;
    }
  }

  tl::expected<PatternTraffic, Problems> build() {
    PatternTraffic result;
    Problems problems;
    if (builder_.layout() == TrafficLayout::compact && sends_at_once(patterns_) &&
        all_messages() >= kFoldFrom) {
      if (fold(result, problems)) return result;
      if (!problems.empty()) return tl::unexpected(std::move(problems));
    }
    double in_memory = 0;
    for (std::size_t p = 0; p < patterns_.size(); ++p) {
      in_memory += messages_in_memory(patterns_[p], builder_.layout(), fabric_.fabric());
      if (in_memory > kMaxMessagesInMemory) {
        problems.add(place(p),
                     fmt::format("brings the messages to more than {:.0f}, the most that memory holds (those "
                                 "that are alike or come step by step need less of it)",
                                 kMaxMessagesInMemory));
        break;
      }
      const std::size_t unreachable_before = builder_.unreachable().size();
      add_pattern(p);
      result.gate_ends.push_back(builder_.gates());
      report_unreachable(p, unreachable_before, problems);
      if (builder_.route_entries() > static_cast<std::size_t>(kMaxRouteEntries)) {
        problems.add(place(p),
                     fmt::format("needs routes of more than {} links in all; use fewer or smaller groups",
                                 kMaxRouteEntries));
        break;
      }
    }
    if (!problems.empty()) return tl::unexpected(std::move(problems));
    std::tie(result.traffic, result.relays) = builder_.finish();
    return result;
  }

 private:
  static std::string place(std::size_t p) { return fmt::format("patterns[{}]", p); }

  /// From so many messages on, folding is tried; fewer are laid out as fast without it.
  static constexpr double kFoldFrom = 1 << 16;

  [[nodiscard]] double all_messages() const {
    double messages = 0;
    for (const Pattern& pattern : patterns_)
      messages += messages_in_memory(pattern, TrafficLayout::in_full, fabric_.fabric());
    return messages;
  }

  /// Folds the messages. Returns false, perhaps with a problem, where there is little to fold.
  bool fold(PatternTraffic& result, Problems& problems) {
    FoldedSends folded = fold_sends(patterns_, fabric_);
    if (folded.outcome == FoldedSends::Outcome::unreachable) {
      problems.add(place(folded.pattern),
                   fabric_.describe(fabric_.explain(folded.cut.source, folded.cut.destination)));
    }
    if (folded.outcome != FoldedSends::Outcome::folded) return false;
    result.folded_away = folded.messages - folded.traffic.sent();
    result.traffic = std::move(folded.traffic);
    result.stands_for = std::move(folded.stands_for);
    result.gate_ends.assign(patterns_.size(), static_cast<std::int32_t>(result.traffic.gates.size()));
    return true;
  }

  void report_unreachable(std::size_t p, std::size_t begin, Problems& problems) const {
    constexpr std::size_t kReported = 5;
    const std::vector<Unreachable>& pairs = builder_.unreachable();
    for (std::size_t i = begin; i < std::min(pairs.size(), begin + kReported); ++i) {
      problems.add(place(p), fabric_.describe(fabric_.explain(pairs[i].source, pairs[i].destination)));
    }
    if (pairs.size() > begin + kReported) {
      problems.add(place(p),
                   fmt::format("likewise {} further pairs of ranks", pairs.size() - begin - kReported));
    }
  }

  void add_pattern(std::size_t p) {
    const Pattern& pattern = patterns_[p];
    entries_.assign(pattern.after.empty() ? 0 : static_cast<std::size_t>(fabric_.fabric().ranks()), kUnset);
    if (awaited_[p]) owed_[p].assign(static_cast<std::size_t>(fabric_.fabric().ranks()), kNone);
    if (pattern.operation == Operation::point_to_point) {
      for (const PointToPoint& send : pattern.sends) add_send(p, send);
    }
    for (const std::vector<std::int32_t>& ranks : pattern.groups) {
      if (ranks.size() > 1) add_group(p, ranks);
    }
  }

  void add_send(std::size_t p, const PointToPoint& send) {
    builder_.begin_group();
    const std::int32_t gate = builder_.add_gate(send.start);
    builder_.opens(entry(p, send.source), gate);
    builder_.send(gate, builder_.connection(send.source, send.destination), send.bytes,
                  exit(p, send.destination));
  }

  void add_group(std::size_t p, const std::vector<std::int32_t>& ranks) {
    const Pattern& pattern = patterns_[p];
    builder_.begin_group();
    GroupTraffic group{builder_, ranks, {}, {}, pattern.start};
    if (rules_of(pattern.algorithm).rings > 0 && pattern.ring_order == RingOrder::hamiltonian) {
      group.ranks = ring_order(fabric_.fabric(), ranks);
    }
    for (std::size_t i = 0; i < group.ranks.size(); ++i) {
      group.entry.push_back(entry(p, group.ranks[i]));
      // Heads of chains and roots of broadcasts are owed nothing.
      const bool owed =
          i > 0 || (pattern.operation != Operation::pipeline && pattern.operation != Operation::broadcast);
      group.exit.push_back(owed ? exit(p, group.ranks[i]) : kNone);
    }
    add_collective(group, pattern);
  }

  /// The gate that lets a rank into the pattern under construction; kNone where no earlier pattern owes it anything.
  std::int32_t entry(std::size_t p, std::int32_t rank) {
    if (entries_.empty()) return kNone;
    std::int32_t& gate = entries_[static_cast<std::size_t>(rank)];
    if (gate != kUnset) return gate;
    gate = kNone;
    std::int32_t joined = kNone;
    for (const std::int32_t earlier : patterns_[p].after) {
      const std::int32_t owed = owed_[static_cast<std::size_t>(earlier)][static_cast<std::size_t>(rank)];
      if (owed == kNone) continue;
      if (gate != kNone && joined == kNone) {
        joined = builder_.add_gate();
        builder_.opens(gate, joined);
      }
      if (joined != kNone) builder_.opens(owed, joined);
      gate = joined != kNone ? joined : owed;
    }
    return gate;
  }

  std::int32_t exit(std::size_t p, std::int32_t rank) {
    if (!awaited_[p]) return kNone;
    std::int32_t& gate = owed_[p][static_cast<std::size_t>(rank)];
    if (gate == kNone) gate = builder_.add_gate();
    return gate;
  }

  static constexpr std::int32_t kUnset = -2;
  const std::vector<Pattern>& patterns_;
  FaultyFabric& fabric_;
  TrafficBuilder builder_;
  std::vector<bool> awaited_;
  std::vector<std::vector<std::int32_t>> owed_;
  std::vector<std::int32_t> entries_;  ///< index: rank; for the pattern under construction
};

}  // namespace

tl::expected<PatternTraffic, Problems> build_traffic(const std::vector<Pattern>& patterns,
                                                     FaultyFabric& fabric, TrafficLayout layout) {
  return PatternBuilder(patterns, fabric, layout).build();
}

namespace {

/// Opens whatever gates can be opened, in any order and without a clock.
class Unlocker {
 public:
  explicit Unlocker(const Traffic& traffic) : traffic_(traffic) {
    pairwise_.reset(traffic);
    for (const Gate& gate : traffic.gates) {
      waiting_.push_back(gate.waiting);
      left_.push_back(gate.times);
      receipts_.push_back(0);
      if (gate.waiting == 0) ready_.push_back(static_cast<std::int32_t>(waiting_.size()) - 1);
    }
  }

  std::vector<std::int32_t> closed() {
    while (!ready_.empty()) {
      const std::int32_t gate = ready_.back();
      ready_.pop_back();
      open(gate);
    }
    std::vector<std::int32_t> gates;
    for (std::size_t g = 0; g < left_.size(); ++g) {
      if (left_[g] > 0) gates.push_back(static_cast<std::int32_t>(g));
    }
    return gates;
  }

 private:
  [[nodiscard]] const Gate& gate(std::int32_t id) const {
    return traffic_.gates[static_cast<std::size_t>(id)];
  }

  void open(std::int32_t id) {
    const auto g = static_cast<std::size_t>(id);
    const bool first = left_[g] == gate(id).times;
    --left_[g];
    if (gate(id).rounds != kNone) pairwise_.begin(id);
    for (std::int32_t m = 0; m < gate(id).messages; ++m)
      receive(traffic_.messages[static_cast<std::size_t>(gate(id).first_message + m)].gate);
    if (gate(id).times == 1) {
      count_down(gate(id).next_gate);
    } else if (first && gate(id).rounds == kNone) {  // turns whose receipts came too early
      const std::int32_t turns = std::min(receipts_[g], gate(id).times - 1);
      for (std::int32_t turn = 0; turn < turns; ++turn) ready_.push_back(id);
    }
  }

  void receive(std::int32_t id) {
    if (id == kNone || gate(id).times == 1) return count_down(id);
    if (gate(id).rounds != kNone) {
      return pairwise_.receive(
          id, [&](std::int32_t again) { ready_.push_back(again); },
          [&](std::int32_t done) { count_down(gate(done).next_gate); });
    }
    const auto g = static_cast<std::size_t>(id);
    if (++receipts_[g] == gate(id).times) {
      count_down(gate(id).next_gate);
    } else if (left_[g] < gate(id).times) {
      ready_.push_back(id);
    }
  }

  void count_down(std::int32_t id) {
    if (id != kNone && --waiting_[static_cast<std::size_t>(id)] == 0) ready_.push_back(id);
  }

  const Traffic& traffic_;
  PairwiseTurns pairwise_;
  /// Index: gate; counts left, openings left, turns received.
  std::vector<std::int32_t> waiting_, left_, receipts_;
  std::vector<std::int32_t> ready_;
};

}  // namespace

std::vector<std::int32_t> closed_gates(const Traffic& traffic) { return Unlocker(traffic).closed(); }

}  // namespace shardscape::network
