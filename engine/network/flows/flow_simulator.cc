// Runs traffic over Fluid: counts down gates as messages are received, opens them in the order of their numbers, and
// sends what waits behind them, also turn by turn and round by round.
#include "engine/network/flows/flow_simulator.h"

#include <algorithm>

#include "engine/network/collectives/pairwise_turns.h"
#include "engine/network/flows/fluid.h"

namespace shardscape::network {

namespace {

constexpr std::int32_t kNoIndex = -1;

}  // namespace

struct FlowSimulator::Impl {
  FlowResult run(const Traffic& traffic, std::span<const double> capacity, RateObserver* observer,
                 GateObserver* gates);

  struct Parcel {
    double bytes = 0;
    std::int32_t message = kNoIndex;
  };
  void wake(std::int32_t gate) { opened_.push_back(gate); }
  void deliver(std::int32_t connection, const Parcel& parcel);
  bool settle();
  void rate_changed(std::int32_t connection, double rate) {
    if (observer_ != nullptr) observer_->rate_changed(fluid_.now(), connection, rate);
  }

 private:
  /// The state of a gate that opens several times.
  struct Turns {
    std::int32_t receipts = 0;
    std::int32_t held = 0;  ///< receipts that came before the first opening
    bool open = false;      ///< whether it has opened once
  };

  void reset(const Traffic& traffic, std::span<const double> capacity);
  void take_turn(std::int32_t gate);
  void resume_turns(std::int32_t gate);
  void receive_round(std::int32_t gate);
  void begin_round(std::int32_t gate);
  void count_down(std::int32_t gate);
  void sort_opened();
  void open_gates();
  bool count_down_chosen();

  const Traffic* traffic_ = nullptr;
  Traffic wires_;  ///< the connections with their present routes, if rounds reroute them
  PairwiseTurns pairwise_;
  std::vector<std::int32_t> path_;  ///< scratch memory
  RateObserver* observer_ = nullptr;
  GateObserver* gate_observer_ = nullptr;
  Fluid<Parcel> fluid_;
  std::vector<std::int32_t> waiting_;  ///< index: gate
  std::vector<Turns> turns_;           ///< index: gate; only if some gate opens several times
  std::vector<std::int32_t> opened_;   ///< gates to be opened in this instant
  double completion_time_ = 0;
};

void FlowSimulator::Impl::reset(const Traffic& traffic, std::span<const double> capacity) {
  traffic_ = &traffic;
  wires_ = {};
  if (!traffic.rounds.empty()) {
    wires_.connections = traffic.connections;
    wires_.path_links = traffic.path_links;
  }
  pairwise_.reset(traffic);
  fluid_.reset(traffic.rounds.empty() ? traffic : wires_, capacity);
  waiting_.resize(traffic.gates.size());
  turns_.clear();
  opened_.clear();
  completion_time_ = 0;
  for (std::size_t g = 0; g < traffic.gates.size(); ++g) {
    waiting_[g] = traffic.gates[g].waiting;
    if (traffic.gates[g].times > 1 && turns_.empty()) turns_.resize(traffic.gates.size());
    if (waiting_[g] == 0) {
      fluid_.wake_at(traffic.gates[g].not_before + traffic.gates[g].delay, static_cast<std::int32_t>(g));
    }
  }
}

FlowResult FlowSimulator::Impl::run(const Traffic& traffic, std::span<const double> capacity,
                                    RateObserver* observer, GateObserver* gates) {
  observer_ = observer;
  gate_observer_ = gates;
  reset(traffic, capacity);
  FlowResult result;
  while (!fluid_.idle()) result.events += fluid_.advance(*this) ? 1 : 0;
  result.completion_time = completion_time_;
  result.received = fluid_.received();
  return result;
}

bool FlowSimulator::Impl::settle() {
  if (opened_.empty()) return count_down_chosen();
  open_gates();
  return true;
}

/// Counts down the gate that the observer chooses; returns false if it chooses none.
bool FlowSimulator::Impl::count_down_chosen() {
  if (gate_observer_ == nullptr) return false;
  const std::int32_t gate = gate_observer_->choose_gate();
  count_down(gate);
  return gate != kNoIndex;
}

void FlowSimulator::Impl::deliver(std::int32_t /*connection*/, const Parcel& parcel) {
  completion_time_ = fluid_.now();
  const std::int32_t gate = traffic_->messages[static_cast<std::size_t>(parcel.message)].gate;
  if (gate == kNoIndex) return;
  const Gate& g = traffic_->gates[static_cast<std::size_t>(gate)];
  if (g.rounds != kNoIndex) {
    receive_round(gate);
  } else if (g.times > 1) {
    take_turn(gate);
  } else {
    count_down(gate);
  }
}

void FlowSimulator::Impl::receive_round(std::int32_t gate) {
  pairwise_.receive(
      gate, [&](std::int32_t again) { opened_.push_back(again); },
      [&](std::int32_t done) { count_down(traffic_->gates[static_cast<std::size_t>(done)].next_gate); });
}

/// Lays the route to the partner of the round that begins.
void FlowSimulator::Impl::begin_round(std::int32_t gate) {
  if (pairwise_.begin(gate) == 0) return;  // the connection was made for that round
  const std::int32_t m = traffic_->gates[static_cast<std::size_t>(gate)].first_message;
  const std::int32_t connection = traffic_->messages[static_cast<std::size_t>(m)].connection;
  path_.clear();
  wires_.connections[static_cast<std::size_t>(connection)].latency = pairwise_.append_route(gate, path_);
  fluid_.reroute(connection, path_);
  if (observer_ != nullptr) observer_->rerouted(connection, path_);
}

void FlowSimulator::Impl::take_turn(std::int32_t gate) {
  const Gate& g = traffic_->gates[static_cast<std::size_t>(gate)];
  Turns& turns = turns_[static_cast<std::size_t>(gate)];
  if (++turns.receipts == g.times) {
    count_down(g.next_gate);
  } else if (turns.open) {
    opened_.push_back(gate);
  } else {
    ++turns.held;
  }
}

/// Takes one of the receipts that came before the first opening as the next turn.
void FlowSimulator::Impl::resume_turns(std::int32_t gate) {
  Turns& turns = turns_[static_cast<std::size_t>(gate)];
  turns.open = true;
  if (turns.held == 0) return;
  --turns.held;
  opened_.push_back(gate);
}

void FlowSimulator::Impl::count_down(std::int32_t gate) {
  if (gate == kNoIndex || --waiting_[static_cast<std::size_t>(gate)] != 0) return;
  const Gate& g = traffic_->gates[static_cast<std::size_t>(gate)];
  const double opens = std::max(fluid_.now(), g.not_before) + g.delay;
  if (opens > fluid_.now()) {
    fluid_.wake_at(opens, gate);
  } else {
    opened_.push_back(gate);
  }
}

/// Sorts gates by number, so that the order of simultaneous events makes no difference.
void FlowSimulator::Impl::sort_opened() {
  const auto fall = std::ranges::is_sorted_until(opened_);
  if (fall == opened_.end()) return;
  // The gates of a ring mostly are in order, but for the place where the ring closes.
  if (opened_.back() < opened_.front() && std::is_sorted(fall, opened_.end())) {
    std::rotate(opened_.begin(), fall, opened_.end());
  } else {
    std::ranges::sort(opened_);
  }
}

void FlowSimulator::Impl::open_gates() {
  sort_opened();
  const std::size_t count = opened_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Gate& gate = traffic_->gates[static_cast<std::size_t>(opened_[i])];
    if (gate_observer_ != nullptr) gate_observer_->gate_opened(fluid_.now(), opened_[i]);
    if (gate.rounds != kNoIndex) begin_round(opened_[i]);
    for (std::int32_t m = gate.first_message; m < gate.first_message + gate.messages; ++m) {
      const Message& message = traffic_->messages[static_cast<std::size_t>(m)];
      fluid_.send(message.connection, {message.bytes, m}, *this);
    }
    if (gate.times == 1) {
      count_down(gate.next_gate);
    } else if (gate.rounds == kNoIndex) {
      resume_turns(opened_[i]);
    }
  }
  opened_.erase(opened_.begin(), opened_.begin() + static_cast<std::ptrdiff_t>(count));
}

FlowSimulator::FlowSimulator() : impl_(std::make_unique<Impl>()) {}
FlowSimulator::~FlowSimulator() = default;
FlowSimulator::FlowSimulator(FlowSimulator&&) noexcept = default;
FlowSimulator& FlowSimulator::operator=(FlowSimulator&&) noexcept = default;

FlowResult FlowSimulator::run_traffic(const Traffic& traffic, std::span<const double> link_bytes_per_second,
                                      RateObserver* observer, GateObserver* gates) {
  return impl_->run(traffic, link_bytes_per_second, observer, gates);
}

}  // namespace shardscape::network
