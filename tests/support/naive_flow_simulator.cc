// Simulates traffic by solving all rates from scratch at every event. Deliberately plain: the production simulator is
// tested against it.
#include "tests/support/naive_flow_simulator.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "engine/network/collectives/pairwise_turns.h"

namespace shardscape::network {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Solves rates by progressive filling (Bertsekas and Gallager 1992, section 6.5.2): raises all rates together; where a
/// link is full, its flows keep their rate.
std::vector<double> max_min_rates(const Traffic& traffic, const std::vector<bool>& active,
                                  std::span<const double> capacity) {
  std::vector<double> rate(traffic.connections.size(), 0);
  std::vector<bool> open = active;
  std::vector<double> left(capacity.begin(), capacity.end());
  for (;;) {
    std::vector<int> flows(capacity.size(), 0);
    for (std::size_t c = 0; c < open.size(); ++c) {
      if (!open[c]) continue;
      for (auto i = traffic.connections[c].path_begin; i < traffic.connections[c].path_end; ++i) {
        ++flows[static_cast<std::size_t>(traffic.path_links[static_cast<std::size_t>(i)])];
      }
    }
    std::size_t tightest = capacity.size();
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      if (flows[link] == 0) continue;
      if (tightest == capacity.size() || left[link] / flows[link] < left[tightest] / flows[tightest])
        tightest = link;
    }
    if (tightest == capacity.size()) return rate;
    const double share = left[tightest] / flows[tightest];
    for (std::size_t c = 0; c < open.size(); ++c) {
      if (!open[c]) continue;
      const auto begin = traffic.path_links.begin() + traffic.connections[c].path_begin;
      const auto end = traffic.path_links.begin() + traffic.connections[c].path_end;
      if (std::find(begin, end, static_cast<std::int32_t>(tightest)) == end) continue;
      rate[c] = share;
      open[c] = false;
      for (auto link = begin; link != end; ++link) {
        double& rest = left[static_cast<std::size_t>(*link)];
        rest = std::max(0.0, rest - share);
      }
    }
  }
}

class NaiveSimulation {
 public:
  NaiveSimulation(const Traffic& traffic, std::span<const double> capacity, GateObserver* gates)
      : traffic_(traffic),
        capacity_(capacity),
        observer_(gates),
        queues_(traffic.connections.size()),
        remaining_(traffic.connections.size(), 0),
        receipts_(traffic.gates.size(), 0),
        held_(traffic.gates.size(), 0),
        opened_(traffic.gates.size(), false),
        open_time_(traffic.gates.size(), kNever) {
    pairwise_.reset(traffic_);
    for (const Gate& gate : traffic.gates) waiting_.push_back(gate.waiting);
    for (std::size_t g = 0; g < traffic.gates.size(); ++g) {
      if (waiting_[g] == 0) schedule_gate(static_cast<std::int32_t>(g));
    }
  }

  FlowResult run() {
    for (;;) {
      while (settle() || count_down_chosen()) {
      }
      const std::vector<double> rates = max_min_rates(traffic_, active(), capacity_);
      const double next = next_event(rates);
      if (next == kNever) return result_;
      ++result_.events;
      for (std::size_t c = 0; c < queues_.size(); ++c) {
        if (queues_[c].empty()) continue;
        const double finish = now_ + remaining_[c] / rates[c];
        remaining_[c] = finish <= next * (1 + kTie) ? 0 : remaining_[c] - rates[c] * (next - now_);
      }
      now_ = next;
    }
  }

 private:
  static constexpr double kTie = 1e-12;  ///< events closer than this, relative to the time, are simultaneous

  [[nodiscard]] bool due(double time) const { return time <= now_ * (1 + kTie); }

  [[nodiscard]] std::vector<bool> active() const {
    std::vector<bool> flags;
    for (const auto& queue : queues_) flags.push_back(!queue.empty());
    return flags;
  }

  [[nodiscard]] double next_event(const std::vector<double>& rates) const {
    double next = kNever;
    for (const Flight& flight : flights_) next = std::min(next, flight.time);
    for (const double time : open_time_) next = std::min(next, time);
    for (std::size_t c = 0; c < queues_.size(); ++c) {
      if (!queues_[c].empty()) next = std::min(next, now_ + remaining_[c] / rates[c]);
    }
    return next;
  }

  /// Does everything that is due now, once. Returns whether anything happened.
  bool settle() {
    bool happened = false;
    for (std::size_t c = 0; c < queues_.size(); ++c) {
      if (queues_[c].empty() || remaining_[c] > 0) continue;
      happened = true;
      flights_.push_back({queues_[c].front(), now_ + traffic_.connections[c].latency});
      queues_[c].pop_front();
      begin_head(c);
    }
    std::vector<Flight> still;
    for (const Flight& flight : std::exchange(flights_, {})) {
      if (!due(flight.time)) {
        still.push_back(flight);
        continue;
      }
      happened = true;
      result_.completion_time = now_;
      ++result_.received;
      receive(traffic_.messages[static_cast<std::size_t>(flight.message)].gate);
    }
    flights_ = std::move(still);
    for (std::size_t g = 0; g < open_time_.size(); ++g) {
      if (!due(open_time_[g])) continue;
      happened = true;
      open_time_[g] = kNever;
      if (observer_ != nullptr) observer_->gate_opened(now_, static_cast<std::int32_t>(g));
      open(static_cast<std::int32_t>(g));
    }
    return happened;
  }

  void open(std::int32_t g) {
    const Gate& gate = traffic_.gates[static_cast<std::size_t>(g)];
    if (gate.rounds >= 0) begin_round(g);
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
      const auto c = static_cast<std::size_t>(traffic_.messages[static_cast<std::size_t>(m)].connection);
      queues_[c].push_back(m);
      if (queues_[c].size() == 1) begin_head(c);
    }
    if (gate.times == 1) return count_down(gate.next_gate);
    if (gate.rounds >= 0) return;
    opened_[static_cast<std::size_t>(g)] = true;
    if (held_[static_cast<std::size_t>(g)]-- > 0) {
      schedule_gate(g);
    } else {
      held_[static_cast<std::size_t>(g)] = 0;
    }
  }

  void begin_round(std::int32_t g) {
    pairwise_.begin(g);
    const auto m = static_cast<std::size_t>(traffic_.gates[static_cast<std::size_t>(g)].first_message);
    Connection& c = traffic_.connections[static_cast<std::size_t>(traffic_.messages[m].connection)];
    c.path_begin = static_cast<std::int32_t>(traffic_.path_links.size());
    c.latency = pairwise_.append_route(g, traffic_.path_links);
    c.path_end = static_cast<std::int32_t>(traffic_.path_links.size());
  }

  void receive(std::int32_t g) {
    if (g >= 0 && traffic_.gates[static_cast<std::size_t>(g)].rounds >= 0) {
      return pairwise_.receive(
          g, [&](std::int32_t again) { schedule_gate(again); },
          [&](std::int32_t done) { count_down(traffic_.gates[static_cast<std::size_t>(done)].next_gate); });
    }
    if (g < 0 || traffic_.gates[static_cast<std::size_t>(g)].times == 1) return count_down(g);
    const Gate& gate = traffic_.gates[static_cast<std::size_t>(g)];
    if (++receipts_[static_cast<std::size_t>(g)] == gate.times) {
      count_down(gate.next_gate);
    } else if (opened_[static_cast<std::size_t>(g)] && open_time_[static_cast<std::size_t>(g)] == kNever) {
      schedule_gate(g);
    } else {
      ++held_[static_cast<std::size_t>(g)];
    }
  }

  void begin_head(std::size_t c) {
    if (queues_[c].empty()) return;
    const bool local = traffic_.connections[c].path_begin == traffic_.connections[c].path_end;
    remaining_[c] = local ? 0 : traffic_.messages[static_cast<std::size_t>(queues_[c].front())].bytes;
  }

  bool count_down_chosen() {
    const std::int32_t gate = observer_ == nullptr ? -1 : observer_->choose_gate();
    count_down(gate);
    return gate >= 0;
  }

  void count_down(std::int32_t gate) {
    if (gate >= 0 && --waiting_[static_cast<std::size_t>(gate)] == 0) schedule_gate(gate);
  }

  void schedule_gate(std::int32_t g) {
    const Gate& gate = traffic_.gates[static_cast<std::size_t>(g)];
    open_time_[static_cast<std::size_t>(g)] = std::max(now_, gate.not_before) + gate.delay;
  }

  Traffic traffic_;  ///< a copy, because rounds of a pairwise all-to-all change the routes
  PairwiseTurns pairwise_;
  std::span<const double> capacity_;
  GateObserver* observer_ = nullptr;
  std::vector<std::deque<std::int32_t>> queues_;
  std::vector<double> remaining_;
  std::vector<std::int32_t> waiting_;
  /// A message that has drained, but is not received yet.
  struct Flight {
    std::int32_t message = 0;
    double time = 0;
  };
  std::vector<Flight> flights_;
  /// For gates that open several times: turns received, and turns that came too early.
  std::vector<std::int32_t> receipts_, held_;
  /// For gates that open several times: whether they have opened once.
  std::vector<bool> opened_;
  std::vector<double> open_time_;  ///< time at which a gate whose count is zero opens
  double now_ = 0;
  FlowResult result_;
};

}  // namespace

FlowResult simulate_naively(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                            GateObserver* gates) {
  return NaiveSimulation(traffic, link_bytes_per_second, gates).run();
}

}  // namespace shardscape::network
